# SPDX-License-Identifier: MIT OR Unlicense
"""kbench from Python: time, compare and judge functions with the measurement engine of kbench.h.

    import kbench
    print(kbench.time(work, x, host=True))          # work on the CPU; without host=True: work on the GPU
    results = kbench.compare({"numpy": f, "mine": g}, inputs=(x,), check="numpy", host=True)
    kbench.table(results)
    kbench.save(results, "results.json")

    print(kbench.judge("theirs.py:softmax", reference, (x,)))     # a submitted function; not a security boundary
    y = kbench.kernels["softmax", "fwd", "onepass"](x)      # the kernel library: kbench_kernels.py

The keys of a record have the meaning that kbench.h documents: times are in milliseconds, rates are per second, and
confidence intervals are 95 % intervals. Only Python's standard library is required.

The first call builds a shared library from kbench.h with cc and stores it under ~/.cache/kbench. The library is
built with CUDA support if a CUDA toolkit or CUDA's wheels from pip are found. Environment variables:

    KBENCH_H          path of kbench.h
    KBENCH_LIB        path of a library that is already built
    KBENCH_NO_CUDA=1  build without CUDA; only work on the host can be timed
    CC, CFLAGS        C compiler and its options
    CUDA_HOME         CUDA toolkit
"""

from __future__ import annotations

import copy
import ctypes as C
import hashlib
import html
import importlib.util
import inspect
import json
import math
import numbers
import operator
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import warnings
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

__version__ = "0.1.0"
__all__ = [
    "time",
    "compare",
    "table",
    "save",
    "load",
    "bench",
    "main",
    "do_bench",
    "Benchmark",
    "perf_report",
    "judge",
    "figure",
    "Figure",
    "Record",
    "Records",
    "Error",
]

_VERSION = 100  # kb_abi("version")


class Error(RuntimeError):
    """kbench cannot do what the caller asked for. The message of the Error gives the reason and the fix."""


# --- untrusted text, escaped as kbench.h escapes it -----------------------------------------------------------

_OBEYED = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff\\ud800-\\udfff]"
    r"|#(?=#[a-z]*\[)"
)


def _harmless(text: str) -> str:
    """Control characters and the markers of workflow commands are escaped, so that neither a terminal nor a CI log
    interprets the text as a command."""

    def spelled(m: "re.Match[str]") -> str:
        code = ord(m[0])
        return " " if 9 <= code <= 13 else f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    start = re.match(r"[\0- \x7f-\U0010ffff]*(?=::)", text)
    if start:
        text = text[: start.end()] + "\\x3a" + text[start.end() + 1 :]
    return _OBEYED.sub(spelled, text)


def _markup(text: str) -> str:
    return html.escape(_harmless(text))


def _cell(text: str) -> str:
    """Returns the text as a CSV cell. Text that a spreadsheet would take for a formula gets an apostrophe in front."""
    text = _harmless(text)
    try:
        float(text)
    except ValueError:
        text = "'" + text if text.lstrip()[:1] in tuple("=+-@\uff0b\uff0d\uff1d\uff20") else text
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',;"') else text


def _say(text: str) -> None:
    for line in f"kbench: {text}".split("\n"):
        print(_harmless(line), file=sys.stderr)


# --- the shared library, which is found or built once, and the structs of kbench.h ----------------------------

_FUNCTION = C.CFUNCTYPE(
    None, C.c_void_p, C.c_void_p
)  # kb_function, kb_desc.check and kb_body: all take two pointers


_TERMS = C.CFUNCTYPE(C.c_void_p, C.c_char_p)  # translates a message into Python's terms


class _Param(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("type", C.c_int),
        ("i", C.c_int64),
        ("r", C.c_double),
        ("s", C.c_char_p),
    ]


class _Desc(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("implementation", C.c_char_p),
        ("dtype", C.c_char_p),
        ("bytes", C.c_double),
        ("flops", C.c_double),
        ("items", C.c_double),
        ("before", _FUNCTION),
        ("user", C.c_void_p),
        ("samples", C.c_int64),
        ("precision", C.c_double),
        ("max_time", C.c_double),
        ("expect", C.c_uint),
        ("seed", C.c_uint64),
        ("device", C.c_int),
        ("host", C.c_bool),
        ("check", _FUNCTION),
        ("mode", C.c_char_p),
        ("params", C.POINTER(_Param)),
        ("n_params", C.c_int),
        ("end_canary", C.c_uint32),
    ]


_AXIS_END, _AXIS_INTS, _AXIS_REALS, _AXIS_STRINGS, _AXIS_SIZE = range(5)
_AXIS_MAX, _LAST_INT = 32, -(2**63)


class _Axis(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("type", C.c_int),
        ("i", C.c_int64 * (_AXIS_MAX + 1)),
        ("r", C.c_double * (_AXIS_MAX + 1)),
        ("s", C.c_char_p * (_AXIS_MAX + 1)),
    ]


class _Entry(C.Structure):
    _fields_ = [
        ("operation", C.c_char_p),
        ("implementation", C.c_char_p),
        ("body", C.CFUNCTYPE(None, C.c_void_p)),
        ("user", C.c_void_p),
        ("axes", C.POINTER(_Axis)),
        ("origin", C.c_char_p),
        ("rung", C.c_int),
        ("needs", C.c_int),
        ("min_sm", C.c_int),
        ("note", C.c_char_p),
        ("returns", C.c_bool),
        ("file", C.c_char_p),
        ("line", C.c_int),
        ("order", C.c_int),
        ("build", C.c_void_p),
        ("next", C.c_void_p),
    ]


class _State(C.Structure):
    _fields_ = [
        ("stream", C.c_void_p),
        ("dtype", C.c_int),
        ("operation", C.c_char_p),
        ("implementation", C.c_char_p),
        ("direction", C.c_char_p),
        ("user", C.c_void_p),
        ("seed", C.c_uint64),
        ("gpu", C.c_bool),
        ("run", C.c_void_p),
    ]


_SIGNATURES = {
    "kb_compare_from": (
        C.c_bool,
        [C.POINTER(_Desc), C.POINTER(_FUNCTION), C.c_void_p, C.c_int64, C.c_void_p, C.c_void_p],
    ),
    "kb_result_free": (None, [C.c_void_p]),
    "kb_json": (C.c_int64, [C.c_void_p, C.c_char_p, C.c_int64]),
    "kb_abi": (C.c_int64, [C.c_char_p]),
    "kbi_calibrate_from": (C.c_bool, [C.c_char_p, C.c_int64]),
    "kbi_set_rephrase": (None, [_TERMS]),
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
    # kb_check_that, kb_fail, kb_skip and kb_note are variadic: each call appends "%s" and one text to these
    # arguments
    "kb_check_that": (C.c_bool, [C.c_void_p, C.c_bool, C.c_double, C.c_double, C.c_char_p]),
    "kb_fail": (None, [C.c_void_p, C.c_char_p]),
    "kb_skip": (None, [C.c_void_p, C.c_char_p]),
    "kb_note": (None, [C.c_void_p, C.c_char_p]),
}


def _find_header() -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    places = [
        os.environ.get("KBENCH_H"),
        os.path.join(here, "..", "..", "kbench.h"),
        os.path.join(here, "kbench.h"),
    ]
    for place in places:
        if place and os.path.isfile(place):
            return os.path.normpath(place)
        if place and place == places[0]:
            raise Error(f"KBENCH_H={place} is no file. Set KBENCH_H to the path of kbench.h.")
    raise Error("kbench.h was not found. Set KBENCH_H to its path.")


def _find_addons(header: str) -> List[str]:
    here = os.path.dirname(header) or "."
    places = [os.path.join(here, "examples", "addons"), here]
    found = []
    for name in ("kbench_inspect.h", "kbench_report.h"):
        paths = [os.path.join(place, name) for place in places]
        found += [path for path in paths if os.path.isfile(path)][:1]
    return found


class _Cuda(NamedTuple):
    include: List[str]  # folders of the CUDA runtime's headers
    folder: str  # folder of the CUDA runtime library
    link: str  # linker option that names the library


_TOOLKIT = "/usr/local/cuda"
_PIP = "pip install nvidia-cuda-nvcc nvidia-cuda-profiler-api"  # installs nvcc and the runtime as wheels


def _pip_folders() -> List[str]:
    """Returns the folders nvidia/* on Python's path, where pip installs the wheels of CUDA."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    roots = [r for r in (spec.submodule_search_locations or [] if spec else []) if os.path.isdir(r)]
    return [os.path.join(root, name) for root in roots for name in sorted(os.listdir(root))]


def _cuda_of_pip() -> Optional[_Cuda]:
    """Returns the oldest complete CUDA runtime among pip's wheels, or None. A driver supports every CUDA runtime that
    is older than the driver. The wheels have the runtime library only under its soname, such as libcudart.so.13."""
    has = lambda folder, header: os.path.isfile(os.path.join(folder, "include", header))
    folders = _pip_folders()
    runtimes = [f for f in folders if has(f, "cuda_runtime_api.h")]
    found = []
    for own in runtimes:
        with open(os.path.join(own, "include", "cuda_runtime_api.h"), errors="replace") as f:
            version = re.search(r"^#define\s+CUDART_VERSION\s+(\d+)", f.read(), re.M)
        number = int(version.group(1)) if version else 0
        name, library = f"libcudart.so.{number // 1000}", os.path.join(own, "lib")
        places = [own, *(f for f in folders if f not in runtimes)]
        of = [next((f for f in places if has(f, h)), None) for h in ("crt/host_defines.h", "cuda_profiler_api.h")]
        if None not in of and os.path.isfile(os.path.join(library, name)):
            include = [os.path.join(f, "include") for f in dict.fromkeys([own, *filter(None, of)])]
            found.append((number, _Cuda(include, library, "-l:" + name)))
    return min(found)[1] if found else None


def _find_cuda() -> Optional[_Cuda]:
    """Prefers a CUDA toolkit to pip's wheels. Returns None if neither is installed, or if KBENCH_NO_CUDA is set."""
    if os.environ.get("KBENCH_NO_CUDA"):
        return None
    nvcc = shutil.which("nvcc")
    roots = [
        os.environ.get("CUDA_HOME"),
        os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None,
        _TOOLKIT,
    ]
    for root in filter(None, roots):
        targets = [root] + [
            os.path.join(root, "targets", t) for t in ("x86_64-linux", "sbsa-linux", "aarch64-linux")
        ]
        include = [
            d
            for d in (os.path.join(t, "include") for t in targets)
            if os.path.isfile(os.path.join(d, "cuda_runtime_api.h"))
        ]
        library = [
            d
            for t in targets
            for d in (os.path.join(t, "lib64"), os.path.join(t, "lib"))
            if os.path.exists(os.path.join(d, "libcudart.so"))
        ]
        if include and library:
            return _Cuda(include[:1], library[0], "-lcudart")
    return _cuda_of_pip()


def _build_command(header: str, output: str) -> List[str]:
    cuda = _find_cuda()
    command = shlex.split(os.environ.get("CC") or "cc") + shlex.split(os.environ.get("CFLAGS") or "-O2")
    command += ["-shared", "-fPIC", "-x", "c", "-DKBENCH_SHARED"]
    if cuda:
        command += ["-DKBENCH_CUDA", *("-I" + folder for folder in cuda.include)]
    *before, last = [header, *_find_addons(header)]
    for source in before:
        command += ["-include", source]
    command += [last, "-o", output]
    if cuda:
        command += ["-L" + cuda.folder, "-Wl,-rpath," + cuda.folder, cuda.link]
    return command + ["-lm", "-ldl", "-lpthread"]


def _cache() -> str:
    return os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "kbench"
    )


def _build_cached(name: str, header: str, command_to: Callable[[str, str], List[str]], what: str) -> str:
    """Returns the path of the library that command_to(header, output) builds. Raises Error if the cache folder cannot
    be written or the build fails."""
    content = hashlib.sha256("\0".join(map(os.path.basename, command_to(header, ""))).encode())
    for source in [header, *_find_addons(header)]:
        with open(source, "rb") as f:
            content.update(f.read())
    key = content.hexdigest()[:32]
    folder = os.path.join(_cache(), key)
    library = os.path.join(folder, name)
    if os.path.isfile(library):
        return library
    try:
        os.makedirs(folder, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(
            suffix=".so", dir=folder
        )  # a temporary name, because two processes may build the library at the same time
    except OSError as error:
        raise Error(
            f"The library cannot be stored in {folder} ({error.strerror}). Set XDG_CACHE_HOME to a writable folder."
        ) from None
    os.close(handle)
    command = command_to(header, unfinished)
    _say(f"building {what}: " + " ".join(map(shlex.quote, command)))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = "" if done.returncode == 0 else done.stdout.decode(errors="replace")[-2000:] or "it failed"
    except OSError as error:
        said = f"{command[0]}: {error.strerror}. Set CC to a C compiler."
    if said:
        os.unlink(unfinished)
        raise Error(
            "The library could not be built. The command was\n    "
            + " ".join(map(shlex.quote, command))
            + "\nIts output was\n    "
            + said.strip().replace("\n", "\n    ")
        )
    os.chmod(unfinished, 0o755)
    os.replace(unfinished, library)
    return library


def _find_library() -> str:
    """Returns the path of libkbench.so. If KBENCH_LIB does not name this file, libkbench.so is built from
    kbench.h."""
    if os.environ.get("KBENCH_LIB"):
        return os.environ["KBENCH_LIB"]
    return _build_cached("libkbench.so", _find_header(), _build_command, "libkbench.so from kbench.h (only once)")


class _Library:
    """Raises Error if the library's version or the size of one of its structs does not match kbench.py."""

    def __init__(self) -> None:
        path = _find_library()
        # The library removes KBENCH_STARTED_AS from the C environment, but not from os.environ, which is a copy.
        self.is_worker = os.environ.get("KBENCH_STARTED_AS", "").split(",")[0] == str(os.getpid())
        try:
            self.handle = C.CDLL(path)
            os.environ.pop("KBENCH_STARTED_AS", None)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self.handle, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise Error(
                f"{path} is no library of kbench {__version__}: {error}. Unset KBENCH_LIB, or build the library again."
            ) from None
        sizes = {
            "kb_desc": _Desc,
            "kb_param": _Param,
            "kb_entry": _Entry,
            "kb_axis": _Axis,
            "kb_state": _State,
        }
        wrong = [name for name, kind in sizes.items() if self.kb_abi(name.encode()) != C.sizeof(kind)]
        if self.kb_abi(b"version") != _VERSION or wrong:
            raise Error(
                f"{path} does not match kbench.py {__version__} (different: {', '.join(wrong) or 'version'}). "
                "Use kbench.py and kbench.h of the same version, and unset KBENCH_LIB."
            )
        self.kbi_set_rephrase(_in_terms)
        self.result_bytes = self.kb_abi(b"kb_result")
        self.cuda = bool(self.kb_abi(b"cuda"))
        self.call_ms: Optional[float] = None  # time of an empty Python function; see _call_cost
        self.calibrated = not self.cuda or self.is_worker

    def __getattr__(self, name: str) -> Any:  # declares to type checkers that _SIGNATURES adds attributes
        raise AttributeError(name)

    def devices(self) -> int:
        n = C.c_int(0)
        return n.value if self.cuda and self.handle.cudaGetDeviceCount(C.byref(n)) == 0 else 0

    def device(self) -> int:
        n = C.c_int(0)
        return n.value if self.cuda and self.handle.cudaGetDevice(C.byref(n)) == 0 else 0

    def calibrate(self, device: int) -> None:
        """Calibrates the event timer once, with the durations of empty kernels by CUPTI. Without CUPTI, or when an
        external profiler is attached, the event timer is not calibrated, and the confidence intervals of short
        kernels are wider."""
        if not self.calibrated and not any(name in os.environ for name in _PROFILERS):
            durations = _cupti_durations(self.handle._name, device)
            self.kbi_calibrate_from(durations, len(durations))
        self.calibrated = True


_PROFILERS = (
    "CUDA_INJECTION64_PATH",
    "NV_NSIGHT_INJECTION_PORT_BASE",
    "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
    "NSYS_PROFILING_SESSION_ID",
    "NV_SANITIZER_INJECTION_PORT_BASE",
)
# Role 2 in KBENCH_STARTED_AS makes the library measure empty kernels with CUPTI and write their durations to a
# file descriptor.
_CUPTI_SCRIPT = """
import ctypes, os, sys
os.environ["KBENCH_STARTED_AS"] = f"{os.getpid()},2,{sys.argv[2]},{sys.argv[3]}"
ctypes.CDLL(sys.argv[1]).kb_main(0, None)
"""


def _cupti_durations(path: str, device: int) -> bytes:
    """Measured in a separate process, because CUPTI slows down launches and cannot be unloaded. Returns no bytes if
    CUPTI is missing or takes longer than ten seconds."""
    if not sys.executable:  # Python is embedded in another program
        return b""
    come, theirs = os.pipe()
    command = [sys.executable, "-I", "-c", _CUPTI_SCRIPT, path, str(device), str(theirs)]
    quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
    try:
        subprocess.run(command, pass_fds=(theirs,), timeout=10, **quiet)  # type: ignore[call-overload]
        os.close(theirs)
        theirs = -1
        return os.read(come, 4096)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    finally:
        for handle in (come, theirs):
            if handle >= 0:
                os.close(handle)


_handle: Optional[_Library] = None


def _library() -> _Library:
    global _handle
    if _handle is None:
        _handle = _Library()
    return _handle


def __getattr__(name: str) -> Any:
    """Imports kbench.kernels on first access, so that kbench.py works without kbench_kernels.py."""
    if name != "kernels":
        raise AttributeError(f"module 'kbench' has no attribute '{name}'")
    try:
        import kbench_kernels
    except ModuleNotFoundError as error:
        if error.name != "kbench_kernels":
            raise
        raise Error(
            "kbench.kernels is in kbench_kernels.py, which is not there. Copy it next to kbench.py. It needs "
            "kbench_kernels.cuh two folders up, next to it, or at the path in KBENCH_KERNELS_CUH."
        ) from None
    globals()["kernels"] = kbench_kernels.kernels
    return kbench_kernels.kernels


def _text(s: Any) -> Optional[bytes]:
    if s is not None and "\0" in str(s):
        raise Error(f"{str(s)!r} contains a NUL character, where text ends in C. Remove the character.")
    return None if s is None else str(s).encode()


def _number(name: str, value: Any, low: float = 0.0) -> float:
    """Returns the argument `name` as a float. Raises Error unless it is a number of at least `low`."""
    if not isinstance(value, (str, bytes)):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if number >= low:
            return number
    raise Error(f"{name}={value!r} must be a number of at least {low:g}.")


def _whole(name: str, value: Any, low: int = 0, high: int = 2**63 - 1) -> int:
    """Returns the argument `name` as an int, which ctypes does not truncate. Raises Error if it is out of range."""
    try:
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        number = low - 1
    if not low <= number <= high:
        raise Error(f"{name}={value!r} must be a whole number from {low} to {high}.")
    return number


def _one_of(name: str, value: Any, values: Sequence[str]) -> int:
    """Returns the index of the argument `name` in `values`. Raises Error if it is unknown."""
    if value not in values:
        raise Error(f"{name}={value!r} is unknown. Valid values: {', '.join(values)}.")
    return list(values).index(value)


def _as_message(text: str) -> C.c_char_p:
    """Returns the text as an argument for "%s": cut to 400 bytes of UTF-8 at a character boundary."""
    return C.c_char_p(text.encode(errors="replace")[:400].decode(errors="ignore").encode())


# --- copying and comparing values of any type ---------------------------------------------------------------

# Default of rtol and atol by element type: |got - want| <= atol + rtol |want|.
_TOLERANCES = {"f64": 1e-9, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2, "int": 0.0}
_SHORT = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "complex128": "f64",
    "complex64": "f32",
    "float": "f64",
    "complex": "f64",
}


def _module_of(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and _module_of(value) != "builtins"


def _interface(value: Any) -> Optional[Dict[str, Any]]:
    """Returns the __cuda_array_interface__ of an array of a library other than torch and cupy, such as numba, jax or
    kbench.kernels. Returns None for any other value."""
    if _module_of(value) in ("builtins", "torch", "cupy"):
        return None
    try:
        return value.__cuda_array_interface__
    except (AttributeError, RuntimeError):
        return None


def _dtype_of(value: Any) -> str:
    """An array has the type of its elements, a Python float has f64, and a container has the least precise type among
    its elements. A value without floating-point numbers has the type "int" and is compared exactly."""
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
        return (
            [_copy(v) for v in value]
            if any(isinstance(v, (list, tuple, dict)) or _is_array(v) for v in value)
            else value[:]
        )
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    if _module_of(value) == "torch" and hasattr(value, "detach"):
        return value.detach().clone()
    if _is_array(value) and hasattr(value, "copy"):
        return value.copy()
    if hasattr(value, "copy_to_device"):
        other = sys.modules["numba"].cuda.device_array_like(value)
        other.copy_to_device(value)
        return other
    # copy.deepcopy of an array without __deepcopy__ would share the memory of the original array
    if _interface(value) is not None and not hasattr(value, "__deepcopy__"):
        raise Error(f"A {type(value).__name__} on a GPU cannot be copied, because it has no copy(). Use torch or cupy.")
    return copy.deepcopy(value)


class _Mismatch(Exception):
    pass


def _compare_numbers(got: Any, want: Any, rtol: float, atol: float) -> float:
    """Returns |got - want| divided by the tolerance. NaN matches only NaN; an infinity matches only the same
    infinity."""
    if isinstance(got, complex) or isinstance(want, complex):
        return max(
            _compare_numbers(got.real, want.real, rtol, atol),
            _compare_numbers(got.imag, want.imag, rtol, atol),
        )
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
    if getattr(want, "_reference", None) is not None:
        return want._reference.compare(got, want)
    if _module_of(want) == "torch":
        import torch as xp

        if not want.dtype.is_floating_point and not want.dtype.is_complex:
            return 0.0 if xp.equal(got, want.to(got.device)) else math.inf
        want = want.to(got.device)
        wide = xp.complex128 if want.dtype.is_complex else xp.float64
        got, want = got.to(wide), want.to(wide)
    else:
        xp = sys.modules[_module_of(want)]
        # a jax array on the host has a type of the module jaxlib, which has no isnan; numpy is used instead
        if not hasattr(xp, "isnan"):
            import numpy as xp

            got, want = xp.asarray(got), xp.asarray(want)
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


def _fetched(about: Dict[str, Any]) -> bytes:
    size, shape, strides = int(about["typestr"][2:]), tuple(about["shape"]), about.get("strides")
    if not math.prod(shape):
        return b""
    reach = [(n - 1) * s for n, s in zip(shape, strides)] if strides else [(math.prod(shape) - 1) * size]
    low = sum(min(0, r) for r in reach)
    piece = C.create_string_buffer(sum(max(0, r) for r in reach) - low + size)
    handle = _library().handle
    handle.cudaDeviceSynchronize()  # the array's library may still write on another stream
    if handle.cudaMemcpy(piece, C.c_void_p(about["data"][0] + low), C.c_size_t(len(piece)), 2):
        raise Error("The array could not be copied from the GPU: cudaMemcpy failed.")
    raw = piece.raw
    if not strides:
        return raw
    at = [-low]
    for n, s in zip(shape, strides):
        at = [a + i * s for a in at for i in range(n)]
    return b"".join(raw[a : a + size] for a in at)


def _compare_fetched(got: Any, want: Any, rtol: float, atol: float) -> float:
    """Compares GPU arrays of a library that kbench does not know: copies them to the host and compares the elements."""
    g, w = _interface(got), _interface(want)
    if g is None or w is None:
        raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
    if tuple(g["shape"]) != tuple(w["shape"]):
        raise _Mismatch(f"its shape is {tuple(g['shape'])}, expected {tuple(w['shape'])}")
    kinds = [str(getattr(v, "dtype", about["typestr"])) for v, about in ((got, g), (want, w))]
    if g["typestr"] != w["typestr"] or kinds[0] != kinds[1]:
        raise _Mismatch(f"its elements are {kinds[0]}, expected {kinds[1]}")
    both = [_fetched(about) for about in (g, w)]
    if both[0] == both[1]:
        return 0.0
    form = {"f2": "e", "f4": "f", "f8": "d", "c8": "f", "c16": "d"}.get(w["typestr"][1:])
    if kinds[1] == "bfloat16":
        form = "f"
        for i, raw in enumerate(both):
            wide = bytearray(2 * len(raw))
            wide[2::4], wide[3::4] = raw[::2], raw[1::2]
            both[i] = bytes(wide)
    if not form:
        return math.inf
    numbers = [struct.unpack(f"<{len(raw) // struct.calcsize(form)}{form}", raw) for raw in both]
    return max(_compare_numbers(a, b, rtol, atol) for a, b in zip(*numbers))


def _compare(got: Any, want: Any, rtol: float, atol: float) -> float:
    """Returns the largest error divided by the tolerance; a correct result gives 1 or less. Raises _Mismatch if type,
    shape or structure differ."""
    if isinstance(want, dict) and isinstance(got, dict):
        if set(got) != set(want):
            raise _Mismatch(f"its keys are {sorted(map(str, got))}, expected {sorted(map(str, want))}")
        return max((_compare(got[k], v, rtol, atol) for k, v in want.items()), default=0.0)
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(got) != len(want):
            raise _Mismatch(f"it has {len(got)} elements, expected {len(want)}")
        return max((_compare(g, w, rtol, atol) for g, w in zip(got, want)), default=0.0)
    if _interface(want) is not None:
        return _compare_fetched(got, want, rtol, atol)
    if _is_array(want) and getattr(want, "shape", ()) != () or _module_of(want) == "torch":
        if _module_of(got) != _module_of(want):
            raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
        return _compare_arrays(got, want, rtol, atol)
    if isinstance(want, float) or isinstance(want, complex) or _is_array(want):
        if isinstance(got, bool) or not (isinstance(got, (int, float, complex)) or _is_array(got)):
            raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
        plain = (lambda v: v.item()) if hasattr(want, "item") or hasattr(got, "item") else (lambda v: v)
        return _compare_numbers(
            plain(got) if hasattr(got, "item") else got,
            plain(want) if hasattr(want, "item") else want,
            rtol,
            atol,
        )
    if type(got) is not type(want):
        raise _Mismatch(f"it is a {type(got).__name__}, expected {type(want).__name__}")
    return 0.0 if got == want else math.inf


class _Expected:
    """A check against expected values: |got - want| <= atol + rtol |want| for each element."""

    def __init__(self, want: Any, rtol: Optional[float], atol: Optional[float]) -> None:
        self.want = want
        self.rtol = _TOLERANCES[_dtype_of(want)] if rtol is None else _number("rtol", rtol)
        self.atol = self.rtol if atol is None else _number("atol", atol)

    def __call__(self, got: Any) -> Tuple[bool, float, float, str]:
        allowed = self.rtol or self.atol
        try:
            worst = _compare(got, self.want, self.rtol, self.atol)
        except _Mismatch as mismatch:
            return False, math.nan, allowed, str(mismatch)
        error = 0.0 if worst == 0 else worst * allowed if allowed else math.inf
        exact = "the value is not equal to the expected value"
        return (
            worst <= 1,
            error,
            allowed,
            f"the error is {error:.3g}; the tolerance is {allowed:.3g}" if allowed else exact,
        )


def _verdict_of(check: Callable[[Any], Any], output: Any) -> Tuple[bool, float, float, str]:
    """The output fails if the check returns False or raises AssertionError."""
    try:
        passed = check(output)
    except AssertionError as error:
        return False, math.nan, math.nan, str(error) or "an assertion failed"
    if isinstance(passed, tuple):
        return passed
    return passed is None or bool(passed), 0.0, 0.0, "the check returned False"


# --- streams: while a function runs, kbench's stream is the current stream of torch and cupy ----------------


class _Streams:
    """Context managers that make kbench's stream current in torch and cupy, shared by all functions of a comparison.
    They are made again when the stream changes or when the timed function has imported torch or cupy."""

    def __init__(self) -> None:
        # (kbench's stream, module torch, module cupy) for which self.managers were created
        self.of: Any = (0, None, None)
        self.managers: List[Any] = []

    def on(self, stream: int) -> Sequence[Any]:
        torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
        if (stream, torch, cupy) != self.of:
            self.of, self.managers = (stream, torch, cupy), []
            device = _library().device()
            if torch is not None and torch.cuda.is_available():
                self.managers.append(torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)))
            if cupy is not None:
                self.managers.append(cupy.cuda.ExternalStream(stream, device))
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


def _blocks() -> Optional[int]:
    """None if torch's caching allocator has no statistics."""
    try:
        return int(sys.modules["torch"].cuda.memory_stats(_library().device())["allocation.all.allocated"])
    except Exception:
        return None


# --- functions that C calls ---------------------------------------------------------------------------------


class _Backwards:
    """Detects a backward pass on a stream other than the timed function's. Autograd runs each node of the backward
    pass on the stream of the node's forward pass. If that stream differs from the timed function's, capture into a
    CUDA graph fails. A failed capture of a backward pass may end the process later, in another thread or when a
    gradient is freed."""

    def __init__(self, stream: int) -> None:
        torch = sys.modules.get("torch")
        self.stream, self.elsewhere = stream, False
        self.variable: Any = getattr(getattr(torch, "autograd", None), "Variable", None)
        self.engine: Any = getattr(self.variable, "_execution_engine", None)

    def __enter__(self) -> "_Backwards":
        if self.engine is not None:
            self.variable._execution_engine = self
        return self

    def __exit__(self, *_: Any) -> None:
        if self.engine is not None:
            self.variable._execution_engine = self.engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def _note_stream(self, *_: Any) -> None:
        self.elsewhere |= sys.modules["torch"].cuda.current_stream().cuda_stream != self.stream

    def run_backward(self, outputs: Any, *args: Any, **options: Any) -> Any:
        nodes, hooks = [getattr(o, "grad_fn", None) or getattr(o, "node", None) for o in outputs], {}
        while nodes:
            node = nodes.pop()
            if node is not None and node not in hooks:
                # autograd.grad does not run the node of a leaf tensor, so the hook is registered on the leaf
                # tensor itself
                leaf = getattr(node, "variable", None)
                register = node.register_prehook if leaf is None else leaf.register_hook
                hooks[node] = register(self._note_stream)
                nodes += [of for of, _ in node.next_functions]
        try:
            return self.engine.run_backward(outputs, *args, **options)
        finally:
            for hook in hooks.values():
                hook.remove()


class _Interrupts:
    """Handles Ctrl-C during a measurement. While Python code runs, Ctrl-C raises KeyboardInterrupt immediately.
    While C code runs, KeyboardInterrupt is raised in the next callback into Python."""

    def __init__(self) -> None:
        self.pending, self.inside = False, False

    def _take(self, number: int, frame: Any) -> None:
        self.pending = True
        if self.inside:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, self._take) if main else None
        try:
            yield
        finally:
            if main:
                signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)


# Libraries raise these exceptions when their own state does not permit stream capture. The function itself may be
# correct, so it is timed, but no CUDA graph of it is inspected.
_REFUSALS = (
    "increase offset for a CUDA generator not in capture mode",  # random numbers of PyTorch
    "calling cuBLAS API during stream capture",  # CuPy
)


# results of functions that return before they do their work
_LAZY = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, map, filter, zip, Future)


class _Job:
    """Exceptions are stored in .error, because they cannot pass through C."""

    def __init__(
        self,
        interrupts: _Interrupts,
        call: Callable[[int], Any],
        before: Optional[Callable[[int], Any]],
        checks: Sequence[Callable[[Any], Any]],
        # tells_blocks: report the allocations by torch's caching allocator, which a captured CUDA graph does not
        # show
        tells_blocks: bool = False,
    ) -> None:
        self.interrupts, self.output, self.tells_blocks = interrupts, None, tells_blocks
        self.error: Optional[BaseException] = None
        self.ran, self.trusted = False, True
        # kb_state to which failures are reported; None: kb_current()
        self.state: Optional[int] = None
        self.checks = checks
        self.fn = _FUNCTION(self._guarded(call, True))
        self.before = _FUNCTION(self._guarded(before, False)) if before else _FUNCTION()
        self.check = _FUNCTION(lambda kb, user: self.run_checks(kb)) if checks else _FUNCTION()

    def _guarded(self, call: Callable[[int], Any], keeps: bool) -> Callable[[int, int], None]:
        interrupts = self.interrupts

        def run(stream: int, user: int) -> None:
            try:
                interrupts.inside = True
                if interrupts.pending:
                    raise KeyboardInterrupt
                if keeps:
                    self.output = None  # frees the previous output before the call, so that its memory can be reused
                    # The first run is not counted, because it also allocates blocks that caches keep.
                    again = self.ran and self.tells_blocks
                    before = _blocks() if again else None
                    self.output = call(stream) if self.ran or not self.trusted else self._first(call, stream)
                    self.ran = True
                    if again:
                        self._tell_blocks(before, _blocks())
                else:
                    call(stream)
                interrupts.inside = False
            except BaseException as error:
                interrupts.inside = False
                self.fail(error, keeps)

        return run

    def _first(self, call: Callable[[int], Any], stream: int) -> Any:
        with _Backwards(stream) as backwards:
            output = call(stream)
        if isinstance(output, _LAZY) and not (isinstance(output, Future) and output.done()):
            raise Error(
                f"The function returned a {type(output).__name__}, which has not done its work yet, so the time would "
                "be too short. Time a function that waits for the result: list(...), asyncio.run(...), .result()"
            )
        kb = self.state or _library().kb_current()
        if kb and backwards.elsewhere:
            note = (
                "PyTorch runs the backward pass on the stream of the forward pass, "
                "so kbench could not capture and inspect the function"
            )
            _library().kb_note(kb, b"%s", _as_message(note))
            _library().kb_expect(kb, _EXPECT["no_capture"])
        return output

    def _tell_blocks(self, before: Optional[int], after: Optional[int]) -> None:
        self.tells_blocks, library = False, _library()
        kb = self.state or library.kb_current()
        if kb and before is not None and after is not None and after > before:
            n = after - before
            text = f"each run allocates {n} block{'s' if n > 1 else ''} by torch's caching allocator"
            library.kb_note(kb, b"%s", _as_message(text))

    def fail(self, error: BaseException, timed: bool = False) -> None:
        library = _library()
        kb = self.state or library.kb_current()
        believed = timed and self.trusted and self.ran and not self.error
        if kb and believed and any(text in str(error) for text in _REFUSALS):
            library.kb_expect(kb, _EXPECT["no_capture"])
            return
        self.error = self.error or error
        said = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        if kb:
            library.kb_fail(kb, b"%s", _as_message(said))

    def run_checks(self, kb: int) -> None:
        if self.error or self.interrupts.pending:
            return
        try:
            for check in self.checks:
                passed, error, allowed, text = _verdict_of(check, self.output)
                _library().kb_check_that(kb, passed, error, allowed, b"%s", _as_message(text))
        except BaseException as error:
            self.fail(error)


# --- records ------------------------------------------------------------------------------------------------


def _show_time(ms: Optional[float]) -> str:
    if ms is None:
        return "no time"
    for unit, scale in (("s", 1e3), ("ms", 1.0), ("us", 1e-3)):
        if abs(ms) >= scale:
            return f"{ms / scale:.4g} {unit}"
    return f"{ms / 1e-6:.4g} ns"


class Record:
    """The result of measuring one implementation. The keys of the record are attributes of this object; KB_RECORD
    in kbench.h documents the keys. For example, time_ms is in milliseconds and throughput_gbps in 1e9 bytes per
    second. A key has the value None if the key does not apply to the measurement.

    A record of work on the host also has python_call_ms, the time that the engine takes to call an empty Python
    function. For work on the host, time_ms includes the overhead python_call_ms."""

    def __init__(self, data: Dict[str, Any], exception: Optional[BaseException] = None) -> None:
        self._data = data
        self.exception = exception

    def __getattr__(self, key: str) -> Any:
        data = self.__dict__.get("_data", {})
        if key in data:
            return data[key]
        raise AttributeError(f"The record has no key '{key}'. .to_dict() shows all keys.")

    def __dir__(self) -> List[str]:
        return sorted(set(object.__dir__(self)) | set(self._data))

    def to_dict(self) -> Dict[str, Any]:
        """Returns a deep copy of all keys and values: times in ms, rates per second, shares between 0 and 1."""
        return copy.deepcopy(self._data)

    def _columns(self) -> Dict[str, str]:
        d = self._data
        flags = d.get("flags") or []
        precision = d.get("precision")
        columns = {
            "name": str(d.get("name")),
            "time": _show_time(d.get("time_ms")) if d.get("time_ms") is not None else str(d.get("status")),
            "+-": f"{100 * precision:.2g} %" if precision is not None else "",
            "GB/s": f"{d['throughput_gbps']:.4g}" if d.get("throughput_gbps") is not None else "",
            "GFLOP/s": f"{d['gflops']:.4g}" if d.get("gflops") is not None else "",
            "speedup": f"{d['speedup']:.3g}" if d.get("speedup") is not None else "",
            "verdict": str(d.get("verdict") or ""),
            "flags": " ".join(flags),
            "message": str(d.get("message") or ""),
        }
        return columns

    def __repr__(self) -> str:
        c = self._columns()
        parts = [c["name"] + ":", c["time"]]
        parts += [f"+-{c['+-']}"] if c["+-"] else []
        parts += [f"{c[unit]} {unit}" for unit in ("GB/s", "GFLOP/s") if c[unit]]
        parts += [f"x{c['speedup']}"] if c["speedup"] else []
        parts += [c[k] for k in ("verdict", "flags") if c[k]]
        return _harmless(" ".join(parts) + (f" ({c['message']})" if c["message"] else ""))

    def _repr_html_(self) -> str:
        return _html_table([self])


def _html_table(records: Sequence[Record]) -> str:
    rows = [r._columns() for r in records]
    keys = [k for k in (rows[0] if rows else {}) if any(row[k] for row in rows)]
    head = "".join(f"<th>{_markup(k)}</th>" for k in keys)
    body = "".join("<tr>" + "".join(f"<td>{_markup(row[k])}</td>" for k in keys) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Records(List[Record]):
    """A list of records. Notebooks show the list as a table; .figure() draws a figure of the records."""

    def _repr_html_(self) -> str:
        return _html_table(self)

    def figure(self, kind: str = "speed", *options: str) -> "Figure":
        """Same as kbench.figure(records, kind, *options)."""
        return figure(self, kind, *options)


class Figure:
    """A figure, which notebooks show. The attribute .svg of a Figure holds the SVG text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Figure of {len(self.svg)} bytes of SVG: .save(path)>"

    def save(self, path: str) -> None:
        """Writes the SVG text to the file `path`."""
        with _replacing(path) as f:
            f.write(self.svg)


def figure(records: Any, kind: str = "speed", *options: str) -> Figure:
    """Draws a figure of records and returns it.

    kind: a plot of kbench's option --plot: speed, roofline, time, gbps, gflops, efficiency, heat, fits, samples,
        ratios or changes.
    options: options of kbench's command line, for example "--where", "dtype=f32".
    Raises Error if no figure of this kind can be drawn from the records."""
    with tempfile.TemporaryDirectory() as folder:
        path, drawn = (os.path.join(folder, name) for name in ("records.json", "figure.svg"))
        _save_some(records, path)
        code, _, said = _captured(["kbench", "--load", path, "--svg", drawn, "--plot", kind, *options])
        if not os.path.isfile(drawn):
            raise Error(_error_of(said) or f"No figure was drawn (exit code {code}).")
        with open(drawn) as f:
            return Figure(f.read())


# pairs: a C name in messages of the C library, and the Python name that replaces the C name
_PYTHON_TERMS: Tuple[Tuple[str, Any], ...] = (
    (r"\bkb_open, kb_run or kb_compare\b", "kbench.time or kbench.compare"),
    (
        r"\bcall\s+kb_check\s+or\s+KB_CHECK_EACH(\s+after\s+the\s+timed\s+block)?",
        "pass check= to compare, or call kb.check",
    ),
    (r"\bkb_expect\(kb,\s*KB_EXPECT_(\w+)\)", lambda m: f'expect=("{m[1].lower()}",)'),
    (r"\bKB_EXPECT_([A-Z_]+)", lambda m: f'"{m[1].lower()}"'),
    (r"\bKB_TIME_HOST\b", "host=True"),
    (r"\s+and\s+kb_keep\b(\(\w*\))?", ""),
    (r"\bKB_TIME\b(\(kb\))?( \{ \.\.\. \})?", "kb.time"),
    (r"\bKB_SAMPLE\b", "before="),
    (r"\b(KB_ALLOC|kb_alloc)\b", "kb.alloc"),
    (r"\b(kb->stream|kb_stream\b(\(kb\))?)", "kb.stream"),
    (r"\bkb_check(_that)?\b(\([^)]*\))?", "check"),
    (r"\bkb_desc\.n_params\b", "params"),
    (r"\bkb_desc(\.|: )", ""),
    (r"\bkb_(fill|note|skip|fail|expect)\b(\(kb[^)]*\))?", r"kb.\1"),
    (r"\bkb_(bytes|flops|items|queries|compare)\b(\(kb[^)]*\))?", r"\1"),
)


# pairs: an option of the command line in an advice, and the argument of compare or time that replaces the option
_PYTHON_OPTIONS: Tuple[Tuple[str, Any], ...] = (
    (r",\s+use\s+--cpu\s+N", ""),
    (r"--max-time\b", "max_time="),
    (r"--iters\b", "samples="),
    (r"--thorough\b", "max_time=10"),
    (r"--(procs\s+5|warmup)\b", r"kbench.bench with --\1"),
)


def _in_python_terms(text: str, terms: Tuple[Tuple[str, Any], ...] = _PYTHON_TERMS) -> str:
    for pattern, replacement in terms:
        text = re.sub(pattern, replacement, text)
    return text


_translated: Dict[bytes, Any] = {}  # keeps the texts alive whose addresses the C library got


@_TERMS
def _in_terms(text: bytes) -> int:
    if text not in _translated:
        _translated[text] = C.create_string_buffer(_in_python_terms(text.decode(errors="replace")).encode())
    return C.addressof(_translated[text])


def _as_list(records: Any) -> List[Record]:
    return [records] if isinstance(records, Record) else list(records)


def _save_some(records: Any, path: str) -> None:
    rows = _as_list(records)
    if not rows:
        raise Error("There is no record to show.")
    save(rows, path)


@contextmanager
def _replacing(path: str) -> Iterator[Any]:
    """Returns a context manager that opens a temporary text file. When the context ends, the file is synchronised
    to disk and atomically replaces path. Symbolic links and the old permissions are kept. If path names a device
    file or a pipe, the text is written directly to path."""
    target = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(target):
        with open(path, "w") as f:
            yield f
        return
    handle, unfinished = tempfile.mkstemp(prefix=".kbench-", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "w") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        if os.path.exists(target):
            mode = os.stat(target).st_mode & 0o777
        else:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(unfinished, mode)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise


def save(records: Any, path: str) -> None:
    """Writes records to a file. An existing file is replaced only when the new file is complete. kbench.load and
    the options --load, --baseline and --compare of kbench programs read such a file.

    records: one record, or an iterable of records.
    path: a file name that ends in .json (one JSON array) or .jsonl (one JSON record per line). A device file or a
        pipe may have any name and gets a JSON array.
    Raises Error if the file name ends in neither .json nor .jsonl, and OSError if the file cannot be written."""
    ending = os.path.splitext(path)[1].lower()
    is_file = not os.path.exists(path) or os.path.isfile(path)
    if is_file and ending not in (".json", ".jsonl"):
        raise Error(
            f"kbench.save writes .json and .jsonl, and {path} ends in neither. "
            f"{_WRITERS.get(ending, 'Use one of these endings')}."
        )
    rows = [r._data for r in _as_list(records)]
    with _replacing(path) as f:
        if ending == ".jsonl" and is_file:
            f.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        else:
            json.dump(rows, f, indent=1, allow_nan=False)
            f.write("\n")


_WRITERS = {
    ".html": 'For a page, call kbench.table(records, "--html", path)',
    ".csv": 'For CSV, call kbench.table(records, "--csv", path)',
    ".md": 'For Markdown, call kbench.table(records, "--md", path)',
    ".svg": "For a figure, call kbench.figure(records).save(path)",
}  # key: file name extension; value: advice on which function writes files with this extension


def _current_keys(old: Dict[str, Any]) -> Dict[str, Any]:
    """In schemas 1 and 2, mode combined the cache state and the timer, and shared_buffers was named stage_shared."""
    if "mode" not in old and "stage_shared" not in old:
        return old
    new: Dict[str, Any] = {}
    for key, value in old.items():
        if key == "mode":
            other = value in (None, "cupti", "wall")
            new["cache"] = old.get("cache", None if other else value)
            new["timer"] = old.get("timer", value if other else "events")
        elif key == "stage_shared":
            new["shared_buffers"] = old.get("shared_buffers", value)
        else:
            new[key] = value
    new["schema"] = 3
    return new


_READABLE = "kbench.load reads files that kbench.save, --json or --jsonl wrote."


def load(path: str) -> Records:
    """Reads records from a file that kbench.save has written, or a kbench program with --json or --jsonl. Records
    of older schemas are converted to the current schema. An unfinished last line of --jsonl, which a killed run
    leaves, is left out with a message on stderr. Raises Error if the file has anything else than records."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    rows: List[Any] = []
    is_array = text.lstrip()[:1] == "["
    lines = [text] if is_array else text.split("\n")
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                rows += json.loads(line) if is_array else [json.loads(line)]
        except ValueError as error:
            if number < len(lines) or number == 1:
                raise Error(f"{path}:{number}: {error}. {_READABLE}") from None
            _say(f"{path}:{number}: this line ends in the middle of a record and is left out.")
    if not all(isinstance(row, dict) and isinstance(row.get("operation", row.get("name")), str) for row in rows):
        raise Error(f"{path} has a value that is no record. {_READABLE}")
    return Records(Record(_current_keys(row)) for row in rows)


def _call_main(words: Sequence[str]) -> int:
    argv = (C.c_char_p * (len(words) + 1))(*[os.fsencode(w) for w in words], None)
    sys.stdout.flush()
    sys.stderr.flush()
    return _library().kb_main(len(words), argv)


def table(records: Any, *options: str) -> None:
    """Prints records to sys.stdout as kbench's table, with advice in terms of the Python interface.

    options: options of kbench's command line, for example "--md", "x.md", "--csv", "x.csv", "--columns",
    "time,speedup". Raises Error if an option is invalid, a file cannot be written, or there is no record."""
    if _library().is_worker:
        return
    texts = [os.fspath(o) for o in options]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.json")
        _save_some(records, path)
        with _terminal_settings(texts) as color:
            code, text, said = _captured(["kbench", "--load", path, *color, *texts])
        terms = _PYTHON_TERMS + _PYTHON_OPTIONS
        sys.stdout.write(_in_python_terms(text, terms))
        if code == 2:
            raise Error(_error_of(said))
        sys.stderr.write(_in_python_terms(said, terms))


def _error_of(said: str) -> str:
    return _in_python_terms(said.strip().rpartition("kbench: error: ")[2])


@contextmanager
def _terminal_settings(options: Sequence[str]) -> Iterator[List[str]]:
    """Output that is captured must fit the terminal of sys.stdout: sets COLUMNS, and yields the options for colour."""
    try:
        terminal = sys.stdout.isatty() and os.get_terminal_size(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        terminal = None
    if not terminal:
        yield []
        return
    chosen = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    chosen = chosen or any(o.startswith(("--color", "--no-color")) for o in options)
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(terminal.columns or 80)
    try:
        yield [] if chosen else ["--color", "always"]
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _shown(words: Sequence[str]) -> int:
    """Runs kbench's command line and writes its output to sys.stdout, also if a program has replaced sys.stdout."""
    try:
        plain = sys.stdout is sys.__stdout__ and sys.stdout is not None and sys.stdout.fileno() == 1
    except (AttributeError, OSError, ValueError):
        plain = False
    if plain:
        return _call_main(words)
    code, text, _ = _captured(words, (1,))  # sys.stdout is not the file that C writes to
    sys.stdout.write(_in_python_terms(text))
    return code


def _captured(words: Sequence[str], handles: Sequence[int] = (1, 2)) -> Tuple[int, str, str]:
    """Returns the exit code, and what C wrote to stdout (1) and stderr (2), if `handles` has them."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        files = {1: out, 2: err}
        for stream in (sys.__stdout__, sys.__stderr__):
            stream.flush() if stream else None
        kept = [os.dup(h) for h in handles]
        for h in handles:
            os.dup2(files[h].fileno(), h)
        try:
            code = _call_main(words)
        finally:
            for h, k in zip(handles, kept):
                os.dup2(k, h)
                os.close(k)
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(errors="replace"), err.read().decode(errors="replace")


# --- time and compare ---------------------------------------------------------------------------------------

_EXPECT = {"transfer": 1, "alloc": 2, "sync": 4, "no_capture": 8}


def _expected_bits(words: Any) -> int:
    words = {words} if isinstance(words, str) else set(words or ())
    for word in words:
        _one_of("expect", word, tuple(_EXPECT))
    return sum(_EXPECT[w] for w in words)


def _params_of(values: Optional[Dict[str, Any]]) -> Any:
    if not hasattr(values or {}, "items") or len(values or {}) > 15:
        raise Error("params must be a dict of at most 15 parameters: {'name': value, ...}")
    array = (_Param * max(1, len(values or {})))()
    for p, (name, value) in zip(array, (values or {}).items()):
        if not str(name) or value is None:
            raise Error(f"params has {name!r}: {value!r}. A parameter has a name and a value, a number or a text.")
        p.name = _text(name)
        if isinstance(value, numbers.Integral):
            p.type, p.i = _AXIS_INTS, _whole(f"params: {name}", value, -(2**63) + 1)
        elif isinstance(value, numbers.Real):
            p.type, p.r = _AXIS_REALS, float(value)
        else:
            p.type, p.s = _AXIS_STRINGS, _text(value)
    return array


def _need_gpu(library: _Library) -> None:
    if library.devices():
        return
    why = (
        "the library was built without CUDA, because no CUDA toolkit was found. Put nvcc on the PATH, set CUDA_HOME, "
        f"or run: {_PIP}"
        if not library.cuda
        else "the driver finds no GPU"
    )
    raise Error(f"GPU work cannot be timed here: {why}. For work on the host, pass host=True.")


def _measure(
    jobs: Dict[str, _Job],
    interrupts: _Interrupts,
    *,
    name: str,
    host: Optional[bool],
    bytes: Optional[float] = None,
    flops: Optional[float] = None,
    items: Optional[float] = None,
    params: Optional[Dict[str, Any]] = None,
    dtype: Optional[str] = None,
    mode: Optional[str] = None,
    precision: Optional[float] = None,
    max_time: Optional[float] = None,
    samples: Optional[int] = None,
    seed: Optional[int] = None,
    device: Optional[int] = None,
    expect: Iterable[str] = (),
    calibrate: bool = True,
) -> List[Record]:
    if mode == "rotate":
        raise Error(
            "mode='rotate' times launches on several copies of the data that together exceed the L2 cache. "
            "kbench can copy only buffers that kb.alloc has allocated. Write a function under @kbench.bench that "
            "allocates its data with kb.alloc, and run the script with --rotate."
        )
    rates = [_number(k, v or 0) for k, v in (("bytes", bytes), ("flops", flops), ("items", items))]
    if math.inf in rates:
        raise Error("bytes, flops and items must be finite.")
    if _number("precision", precision or 0) >= 1:
        raise Error(f"precision={precision} is a fraction of the median: 0.05 is 5 %. It must be below 1.")
    library = _library()
    if calibrate and not host:
        library.calibrate(_whole("device", device or 0, high=2**31 - 1))
    n = len(jobs)
    descs, given, expected = (_Desc * n)(), _params_of(params), _expected_bits(expect)
    for d, (implementation, job) in zip(descs, jobs.items()):
        d.name, d.implementation, d.dtype, d.mode = (
            _text(name),
            _text(implementation),
            _text(dtype),
            _text(mode),
        )
        d.bytes, d.flops, d.items = rates
        d.samples, d.precision = _whole("samples", samples or 0), float(precision or 0)
        d.max_time, d.seed = _number("max_time", max_time or 0), _whole("seed", seed or 0, high=2**64 - 1)
        d.device, d.host, d.expect = _whole("device", device or 0, high=2**31 - 1), bool(host), expected
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
        data = json.loads(text.value.decode())
        records.append(Record(data, job.error))
    if interrupts.pending:
        raise KeyboardInterrupt
    return records


def _call_cost() -> float:
    """Returns the time of calling an empty Python function, in ms, which is measured once per process. The time of
    each function that runs on the host includes this overhead."""
    library = _library()
    if library.call_ms is None:
        library.call_ms = math.nan
        interrupts = _Interrupts()
        job = _Job(interrupts, lambda stream: None, None, [])
        (record,) = _measure(
            {"empty": job}, interrupts, name="python_call", host=True, precision=0.02, max_time=0.1
        )
        library.call_ms = math.nan if record.time_ms is None else record.time_ms
    return library.call_ms


def _say_call(record: Record) -> None:
    cost, time_ms = _call_cost(), record.time_ms
    record._data["python_call_ms"] = None if math.isnan(cost) else cost
    if time_ms is None or not cost > 0.05 * time_ms:
        return
    note = f"calling the Python function from C takes {_show_time(min(cost, time_ms))} of this time"
    record._data["message"] = f"{record.message}; {note}" if record.message else note


def _checks_of(
    check: Any,
    functions: Dict[str, Callable[..., Any]],
    inputs: Sequence[Any],
    rtol: Optional[float],
    atol: Optional[float],
    streams: _Streams,
) -> List[Callable[[Any], Any]]:
    """If the reference returns None, the functions work in place, and the inputs after a call are compared instead of
    outputs."""
    if check is None or callable(check):
        if rtol is not None or atol is not None:
            raise Error("rtol and atol have no effect, because check gives no expected output. Leave them out.")
        return [] if check is None else [check]
    if not isinstance(check, str):
        return [_Expected(check, rtol, atol)]
    if check not in functions:
        raise Error(f"check='{check}' is not one of the functions ({', '.join(map(str, functions))}).")
    own = _copy(tuple(inputs))
    output = (
        _on_stream(functions[check], own, streams)(0)
        if _takes_stream(functions[check])
        else functions[check](*own)
    )
    expected = _Expected(_copy(own if output is None else output), rtol, atol)
    if output is not None:
        return [expected]
    return [lambda got: expected(tuple(inputs))]


def compare(
    functions: Dict[str, Callable[..., Any]],
    inputs: Sequence[Any] = (),
    *,
    name: Optional[str] = None,
    check: Any = None,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    bytes: Optional[float] = None,
    flops: Optional[float] = None,
    items: Optional[float] = None,
    params: Optional[Dict[str, Any]] = None,
    dtype: Optional[str] = None,
    before: Optional[Callable[..., Any]] = None,
    host: Optional[bool] = None,
    mode: Optional[str] = None,
    precision: Optional[float] = None,
    max_time: Optional[float] = None,
    samples: Optional[int] = None,
    seed: Optional[int] = None,
    device: Optional[int] = None,
    expect: Iterable[str] = (),
) -> Records:
    """Calls every function with the same inputs, checks the outputs, and times the functions in interleaved
    rounds. Compares the time of each function with the time of the first function (the baseline). Returns one
    record per function.

    functions: a dict that maps names to functions. A function with a parameter named `stream` gets kbench's
        stream, a cudaStream_t, as a number. During the call of a function without the parameter `stream`, kbench's
        stream is the current stream of torch and cupy.
    inputs: the arguments of every function.
    name: the name of the comparison in the records.
    check: how the outputs are checked. The check runs after the first and after the last run of each function. No
        time is reported for a function whose output is wrong. Possible values of check: the name of the function
        whose output is the reference; the expected output; or a function that takes an output and returns True or
        raises AssertionError. If the named function returns None, the functions work in place: the contents of the
        inputs after a call are compared instead of outputs.
    rtol, atol: tolerance, |got - want| <= atol + rtol |want|. The default of rtol depends on the element type (f64
        1e-9, f32 2e-5, f16 4e-3, bf16 3e-2, everything else exact). The default of atol is rtol.
    bytes, flops, items: bytes moved, floating-point operations and items of one call, from which rates are
        computed.
    params, dtype: parameters of the comparison, which are stored in the record.
    before: a function that is called with the inputs before each sample, outside the timed region.
    host: True for work on the host, which needs no GPU.
    device: number of the GPU.
    mode: cache state for GPU work. "cold" (default): the data is not in the L2 cache. "hot": every call uses the
        same data, so data that fits stays in the L2 cache. "graph": a CUDA graph launches the function several
        times in a row on the same data. The time of a graph includes the gaps between launches. No time is
        reported for a function that cannot be captured into a graph. To time launches on several copies of the
        data that together exceed the L2 cache, use kbench.bench with kb.alloc, and run with --rotate.
    precision: sampling stops when half the width of the 95 % confidence interval divided by the median is at most
        this number (default 0.005).
    max_time: seconds of sampling per function (default 1).
    samples: number of samples to take; by default, precision and max_time decide.
    seed: seed of the random numbers.
    expect: operations that belong to the measured work, and therefore get no flag: "transfer", "alloc", "sync".
        "no_capture": the function cannot be captured into a CUDA graph, and is not inspected. kbench sets
        "no_capture" itself if a function uses random numbers of PyTorch, runs the backward pass of an earlier
        forward pass, or calls cuBLAS through CuPy. Allocations by torch's caching allocator are always allowed;
        the record's message gives the number of blocks that each run allocates.

    If a function raises an exception, its record holds the exception, and the other functions are still measured.
    A function that returns a generator, a coroutine or a Future fails, because its work is done after it returns.
    Raises Error if the arguments are invalid or no GPU can be used, and KeyboardInterrupt on Ctrl-C.
    """
    if not functions or not hasattr(functions, "items"):
        raise Error("kbench.compare needs a dict of functions: {'name': function, ...}")
    if not host:
        _need_gpu(_library())
    interrupts, streams = _Interrupts(), _Streams()
    checks = _checks_of(check, functions, inputs, rtol, atol, streams)
    jobs = {}
    for key, fn in functions.items():
        wrap = _plain if host else _on_stream
        jobs[key] = _Job(
            interrupts,
            wrap(fn, inputs, streams),
            wrap(before, inputs, streams) if before else None,
            checks,
            tells_blocks=not host,
        )
    records = _measure(
        jobs,
        interrupts,
        name=name or "compare",
        host=host,
        bytes=bytes,
        flops=flops,
        items=items,
        params=params,
        dtype=dtype,
        mode=mode,
        precision=precision,
        max_time=max_time,
        samples=samples,
        seed=seed,
        device=device,
        expect=expect,
    )
    for record in records:
        if host:
            _say_call(record)
    return Records(records)


def _plain(fn: Callable[..., Any], args: Sequence[Any], streams: Any) -> Callable[[int], Any]:
    return (lambda stream: fn()) if not args else (lambda stream: fn(*args))


def time(
    fn: Callable[..., Any],
    *args: Any,
    name: Optional[str] = None,
    check: Any = None,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    bytes: Optional[float] = None,
    flops: Optional[float] = None,
    items: Optional[float] = None,
    params: Optional[Dict[str, Any]] = None,
    dtype: Optional[str] = None,
    before: Optional[Callable[..., Any]] = None,
    host: Optional[bool] = None,
    mode: Optional[str] = None,
    precision: Optional[float] = None,
    max_time: Optional[float] = None,
    samples: Optional[int] = None,
    seed: Optional[int] = None,
    device: Optional[int] = None,
    expect: Iterable[str] = (),
) -> Record:
    """Times fn(*args) and returns its record; time_ms is the median time in milliseconds. The keyword arguments
    have the meaning that they have for kbench.compare. If fn raises an exception, kbench.time raises it as
    well."""
    called = getattr(fn, "__name__", "function")
    (record,) = compare(
        {called: fn},
        args,
        name=name or called,
        check=check,
        rtol=rtol,
        atol=atol,
        bytes=bytes,
        flops=flops,
        items=items,
        params=params,
        dtype=dtype,
        before=before,
        host=host,
        mode=mode,
        precision=precision,
        max_time=max_time,
        samples=samples,
        seed=seed,
        device=device,
        expect=expect,
    )
    if record.exception is not None:
        raise record.exception
    return record


# --- DLPack: sharing memory with other libraries without a copy (github.com/dmlc/dlpack, dlpack.h 1.0) --------


class _DlTensor(C.Structure):
    _fields_ = [
        ("data", C.c_void_p),
        ("device_type", C.c_int32),
        ("device", C.c_int32),
        ("ndim", C.c_int32),
        ("code", C.c_uint8),
        ("bits", C.c_uint8),
        ("lanes", C.c_uint16),
        ("shape", C.POINTER(C.c_int64)),
        ("strides", C.POINTER(C.c_int64)),
        ("byte_offset", C.c_uint64),
    ]


class _DlManaged(C.Structure):
    _fields_ = [("tensor", _DlTensor), ("context", C.c_void_p), ("deleter", C.c_void_p)]


class _DlVersioned(C.Structure):
    _fields_ = [
        ("major", C.c_uint32),
        ("minor", C.c_uint32),
        ("context", C.c_void_p),
        ("deleter", C.c_void_p),
        ("flags", C.c_uint64),
        ("tensor", _DlTensor),
    ]


_DL_CPU, _DL_CUDA = 1, 2
_DL_TYPES = {f"{kind}{bits}": (code, bits) for code, kind in enumerate("iu") for bits in (8, 16, 32, 64)}
_DL_TYPES.update(f16=(2, 16), f32=(2, 32), f64=(2, 64), tf32=(2, 32), bf16=(4, 16), e4m3=(10, 8), e5m2=(12, 8))
# names of DLPack capsules that no consumer has taken yet
_DL_NAMES = {b"dltensor": _DlManaged, b"dltensor_versioned": _DlVersioned}
_exported: Dict[int, Any] = {}  # key: address of a DLManagedTensor; value: the objects that keep its memory alive

_capsule_new, _capsule_pointer, _capsule_is = (
    C.PYFUNCTYPE(result, *arguments)((name, C.pythonapi))
    for name, result, arguments in (
        ("PyCapsule_New", C.py_object, (C.c_void_p, C.c_char_p, C.c_void_p)),
        ("PyCapsule_GetPointer", C.c_void_p, (C.c_void_p, C.c_char_p)),
        ("PyCapsule_IsValid", C.c_int, (C.c_void_p, C.c_char_p)),
    )
)


# The interpreter may already have cleared this module's globals, so these functions use only default arguments,
# which stay valid.
def _dlpack_deleted(address: int, forget: Any = _exported.pop) -> None:
    forget(address, None)


def _capsule_gone(
    capsule: int,
    names: Any = tuple(_DL_NAMES),
    valid: Any = _capsule_is,
    pointer: Any = _capsule_pointer,
    forget: Any = _exported.pop,
) -> None:
    for name in names:
        if valid(capsule, name):
            forget(pointer(capsule, name), None)


_on_dlpack_deleted, _on_capsule_gone = (C.CFUNCTYPE(None, C.c_void_p)(f) for f in (_dlpack_deleted, _capsule_gone))
for _kept_for_good in (_on_dlpack_deleted, _on_capsule_gone):
    C.pythonapi.Py_IncRef(C.py_object(_kept_for_good))


class _DlpackExporter:
    """Base class of arrays that torch.from_dlpack and numpy.from_dlpack accept. A subclass defines the attributes
    `address` and `shape`, and the method _dlpack_type, which returns the element type (such as f32) and the number
    of the GPU, or None for host memory."""

    address: int
    shape: Tuple[int, ...]

    def _dlpack_type(self) -> Tuple[str, Optional[int]]:
        raise NotImplementedError

    def __dlpack_device__(self) -> Tuple[int, int]:
        device = self._dlpack_type()[1]
        return (_DL_CPU, 0) if device is None else (_DL_CUDA, device)

    def __dlpack__(
        self, *, stream: Optional[int] = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Returns a capsule with the array. For GPU memory, waits until the GPU is idle, unless stream is -1.
        Raises BufferError if DLPack has no code for the element type, or if the caller asks for a copy."""
        dtype, where = self._dlpack_type()[0], self.__dlpack_device__()
        if dtype not in _DL_TYPES:
            raise BufferError(f"DLPack has no {dtype}")
        if copy or (dl_device is not None and tuple(dl_device) != where):
            raise BufferError("the memory is shared, not copied: neither copy=True nor another device is possible")
        if where[0] == _DL_CUDA and stream != -1:
            _library().handle.cudaDeviceSynchronize()
        name = b"dltensor_versioned" if max_version and max_version[0] >= 1 else b"dltensor"
        lent, n = _DL_NAMES[name](), len(self.shape)
        shape = (C.c_int64 * max(1, n))(*self.shape)
        strides = (C.c_int64 * max(1, n))(*(math.prod(self.shape[i + 1 :]) for i in range(n)))
        code, bits = _DL_TYPES[dtype]
        lent.tensor = _DlTensor(self.address, *where, n, code, bits, 1, shape, strides, 0)
        lent.deleter = C.cast(_on_dlpack_deleted, C.c_void_p)
        if isinstance(lent, _DlVersioned):
            lent.major = 1
        _exported[C.addressof(lent)] = lent, shape, strides, name, self
        return _capsule_new(C.addressof(lent), name, C.cast(_on_capsule_gone, C.c_void_p))


def _import_dlpack(value: Any) -> Optional[Tuple[Any, Any, str, Optional[int]]]:
    """Reads an array of another library through DLPack. Returns the capsule, which must stay alive while the memory
    is in use, its _DlTensor, the element type (f32, ...) and the GPU number (None: host memory)."""
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        return None
    kind, device = value.__dlpack_device__()
    on_gpu = int(kind) == _DL_CUDA
    capsule = value.__dlpack__(stream=1) if on_gpu else value.__dlpack__()  # 1: the default stream
    name = next((n for n in _DL_NAMES if _capsule_is(id(capsule), n)), None)
    if name is None or not (on_gpu or int(kind) in (_DL_CPU, 3)):  # 3: pinned
        return None
    tensor = _DL_NAMES[name].from_address(_capsule_pointer(id(capsule), name)).tensor
    types = {v: k for k, v in reversed(list(_DL_TYPES.items()))}
    dtype = types.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return capsule, tensor, dtype or f"DLPack's {tensor.code} of {tensor.bits} bits", device if on_gpu else None


# --- programs: benchmarks with axes, and kbench's command line ----------------------------------------------


class Buffer(_DlpackExporter):
    """Memory that kb.alloc has allocated. numpy, torch and cupy use a Buffer without a copy, also through DLPack.
    kbench frees the memory at the end of the case."""

    def __init__(self, address: int, count: int, dtype: str, gpu: bool) -> None:
        self.address, self.count, self.dtype, self.shape, self._gpu = address, count, dtype, (count,), gpu
        kind = {"f": "f", "i": "i", "u": "u"}.get(dtype[0])
        size = {"8": 1, "16": 2, "32": 4, "64": 8}.get(dtype[1:])
        self.size = size
        interface = {
            "shape": (count,),
            "typestr": f"{'|' if size == 1 else '<'}{kind}{size}",
            "data": (address, False),
            "version": 3,
        }
        if kind and size:
            setattr(self, "__cuda_array_interface__" if gpu else "__array_interface__", interface)

    def _dlpack_type(self) -> Tuple[str, Optional[int]]:
        return self.dtype, _library().device() if self._gpu else None

    def values(self) -> Any:
        """Returns a ctypes array that shares the memory of this Buffer. Raises Error for memory on a GPU, and for
        element types that ctypes does not have."""
        kinds: Dict[str, Any] = {
            "f32": C.c_float,
            "f64": C.c_double,
            "i8": C.c_int8,
            "u8": C.c_uint8,
            "i16": C.c_int16,
            "u16": C.c_uint16,
            "i32": C.c_int32,
            "u32": C.c_uint32,
            "i64": C.c_int64,
            "u64": C.c_uint64,
        }
        if not hasattr(self, "__array_interface__") or self.dtype not in kinds:
            raise Error(
                f"values() cannot read a buffer of {self.dtype} on this device. Pass the buffer to numpy or torch."
            )
        return (kinds[self.dtype] * self.count).from_address(self.address)


class Case:
    """The object that a function under @kbench.bench gets as its first argument, `kb`. The benchmark function sets
    up its data, passes the function to be timed to kb.time, and returns. After the benchmark function has
    returned, the engine runs the timed function.

    stream: kbench's stream, a cudaStream_t as a number. gpu: True if the case runs on a GPU. seed: the case's seed.
    dtype: the case's element type, or None."""

    def __init__(self, address: int, interrupts: _Interrupts) -> None:
        self._kb, self._lib, self._interrupts = address, _library(), interrupts
        self._checks: List[Callable[[Any], Any]] = []
        # (timed function, untimed function before each sample or None, whether the timed function works on the
        # host)
        self._timed: Any = None
        state = C.cast(address, C.POINTER(_State)).contents
        self.stream: int = state.stream or 0
        self.gpu: bool = state.gpu
        self.seed: int = state.seed
        self.dtype: Optional[str] = self._lib.kb_dtype_name(state.dtype).decode() if state.dtype else None

    def time(
        self,
        fn: Callable[..., Any],
        *args: Any,
        before: Optional[Callable[..., Any]] = None,
        host: bool = False,
    ) -> None:
        """Sets the timed function: fn(*args). before(*args) is called before each sample, outside the timed
        region. host=True: fn works on the host. Without a GPU and without host=True the case is skipped."""
        if self._timed:
            return self.fail("kb.time was called twice, but a benchmark has only one timed function")
        if not host and not self.gpu:
            return self.skip("needs a GPU; for work on the host, call kb.time(..., host=True)")
        wrap = _plain if host else _on_stream
        streams = _Streams()
        self._timed = (wrap(fn, args, streams), wrap(before, args, streams) if before else None, host)

    def check(
        self, got: Any, want: Any = None, rtol: Optional[float] = None, atol: Optional[float] = None
    ) -> None:
        """Adds a check, which runs after the first and after the last run of the timed function.

        check(test): test(output) returns True, or raises AssertionError.
        check(got, want): the contents of the array `got` are compared with `want`.
        check(None, want): the output of the timed function is compared with `want`.
        rtol, atol: as in kbench.compare."""
        if callable(got):
            if want is not None or rtol is not None or atol is not None:
                raise Error("kb.check(test) takes no want, rtol or atol. Compare inside the test, or pass an array.")
            self._checks.append(got)
        else:
            if got is not None and want is None:
                raise Error("kb.check(got, want) needs want. kb.check(None, want) compares the function's output.")
            expected = _Expected(_copy(want), rtol, atol)
            self._checks.append(expected if got is None else lambda output: expected(got))

    def bytes(self, n: float) -> None:
        """Sets the number of bytes that one run must move, from which the throughput in GB/s (1e9 bytes per second)
        follows."""
        self._lib.kb_bytes(self._kb, _number("kb.bytes", n))

    def flops(self, n: float) -> None:
        """Sets the number of floating-point operations of one run, from which the rate in GFLOP/s (1e9 operations per
        second) follows."""
        self._lib.kb_flops(self._kb, _number("kb.flops", n))

    def items(self, n: float) -> None:
        """Sets the number of items that one run processes, for items_per_second in the record."""
        self._lib.kb_items(self._kb, _number("kb.items", n))

    def queries(self, n: float) -> None:
        """Sets the number of queries (for example, lookups) that one run answers, for queries_per_second in the
        record."""
        self._lib.kb_queries(self._kb, _number("kb.queries", n))

    def expect(self, *words: str) -> None:
        """Allows operations of the timed function because they belong to the measured work: "transfer", "alloc",
        "sync". "no_capture": the function cannot be captured into a CUDA graph."""
        self._lib.kb_expect(self._kb, _expected_bits(words))

    def skip(self, why: str) -> None:
        """Skips the case; `why` is the reason that the record shows. The case gets the status "skipped", which does
        not count as a failure. Call it before time()."""
        self._lib.kb_skip(self._kb, b"%s", _as_message(why))

    def fail(self, why: str) -> None:
        """Marks the case as failed: the record gets the flag BAD_CASE and the reason `why`, and holds no time."""
        self._lib.kb_fail(self._kb, b"%s", _as_message(why))

    def note(self, text: str) -> None:
        """Adds a note to the record's message. A note of more than 400 bytes is cut to 400 bytes."""
        self._lib.kb_note(self._kb, b"%s", _as_message(text))

    def alloc(self, count: int, dtype: str = "f32", place: Optional[str] = None) -> Buffer:
        """Allocates count elements and returns a Buffer, which kbench frees.

        dtype: the element type, such as "f32". place: "device", "host" or "pinned" (page-locked host memory); by
        default "device" if the case runs on a GPU, otherwise "host". Raises MemoryError."""
        kind = self._lib.kb_dtype_of(str(dtype).encode())
        if not kind:
            raise Error(f"alloc: dtype={dtype!r} is unknown. Valid values: f32, f64, f16, bf16, i8, u8, ..., u64.")
        count = _whole("alloc: count", count)
        where = _one_of("alloc: place", place or ("device" if self.gpu else "host"), ("device", "host", "pinned"))
        address = self._lib.kb_alloc(self._kb, where, self._lib.kb_dtype_size(kind), count)
        if not address:
            raise MemoryError(f"{count} elements of {dtype}")
        return Buffer(address, count, dtype, self.gpu and where == 0)

    def fill(self, buffer: Buffer, kind: str = "normal") -> None:
        """Fills a buffer: "zero", "normal", "uniform" or "iota". The same seed gives the same random values on
        every machine."""
        self._lib.kbi_fill(
            self._kb,
            buffer.address,
            self._lib.kb_dtype_of(buffer.dtype.encode()),
            buffer.count,
            _one_of("fill: kind", kind, ("zero", "normal", "uniform", "iota")),
        )


def _axis(name: str, values: Sequence[Any]) -> _Axis:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise Error(f"axis '{name}' is {values!r}. An axis is a list of values: {name}=[{values!r}]")
    values = list(values)
    if not 1 <= len(values) <= _AXIS_MAX:
        raise Error(f"axis '{name}' has {len(values)} values; 1 to {_AXIS_MAX} are possible.")
    a = _Axis(_text(name))
    if all(isinstance(v, numbers.Integral) for v in values):
        a.type, a.i[len(values)] = _AXIS_INTS, _LAST_INT
        a.i[: len(values)] = [_whole(f"axis '{name}'", v, _LAST_INT + 1) for v in values]
    elif all(isinstance(v, numbers.Real) for v in values):
        a.type, a.r[len(values)] = _AXIS_REALS, math.nan
        a.r[: len(values)] = [float(v) for v in values]
    elif all(isinstance(v, str) for v in values):
        a.type = _AXIS_STRINGS
        for i, v in enumerate(values):
            a.s[i] = _text(v)
    else:
        raise Error(f"axis '{name}' mixes types. The values of an axis must be all numbers or all strings.")
    return a


class _Registered:
    """A registered implementation, which the library refers to until the process ends."""

    def __init__(
        self,
        fn: Callable[..., None],
        operation: str,
        implementation: str,
        axes: Dict[str, Sequence[Any]],
        sizes: Dict[str, str],
        origin: Optional[str],
        rung: int,
        note: Optional[str],
    ) -> None:
        self.fn = fn
        self.running: Dict[int, Tuple[Case, _Job]] = {}  # key: address of the kb_state of a running case
        self.interrupts = _Interrupts()
        # keeps the axes alive, because self.axes points to their strings
        rows = self.rows = [_axis(k, v) for k, v in axes.items()]
        self.kinds = {k: row.type for k, row in zip(axes, rows)}
        named = {category: re.findall(r"([^\s=]+)=", spec) for category, spec in sizes.items()}
        if len(set(map(frozenset, named.values()))) > 1:
            raise Error(f"sizes must give values to the same axes in each category, not {named}.")
        for name in (name for of in named.values() for name in of):
            if name in axes:
                raise Error(f"axis '{name}' has values in sizes and of its own. Leave out either list.")
            self.kinds[name] = _AXIS_INTS
        for category, spec in sizes.items():
            row = _Axis(_text(category), _AXIS_SIZE)
            row.s[0] = _text(spec)
            rows.append(row)
        self.axes = (_Axis * (len(rows) + 1))(*rows, _Axis(None, _AXIS_END))
        self.entry = _Entry(
            operation=_text(operation),
            implementation=_text(implementation),
            axes=self.axes,
            origin=_text(origin),
            rung=rung,
            note=_text(note),
            returns=True,
        )
        self.entry.body = _Entry._fields_[2][1](self.body)
        code = getattr(fn, "__code__", None)  # a callable object has none
        self.file = _text(code and inspect.getsourcefile(code) or "")
        self.entry.file, self.entry.line = self.file, code.co_firstlineno if code else 0
        _library().kb_add_from(C.byref(self.entry), None)

    def _value(self, kb: int, axis: str) -> Any:
        library, name = _library(), _text(axis)
        kind = self.kinds[axis]
        if kind == _AXIS_STRINGS:
            return library.kb_str(kb, name).decode()
        return library.kb_int(kb, name) if kind == _AXIS_INTS else library.kb_real(kb, name)

    def body(self, kb: int) -> None:
        """The engine calls `body` until the case has ended; only the first call runs the benchmark function."""
        if kb not in self.running:
            case = Case(kb, self.interrupts)
            try:
                self.fn(case, **{axis: self._value(kb, axis) for axis in self.kinds})
            except BaseException as error:
                traceback.print_exc()
                return case.fail(f"{type(error).__name__}: {error}")
            if not case._timed:
                return
            job = _Job(self.interrupts, case._timed[0], case._timed[1], case._checks, not case._timed[2])
            job.state = kb
            self.running[kb] = case, job
        case, job = self.running[kb]
        if not _library().kb_loop(kb, case._timed[2], job.before, job.fn, None):
            return
        del self.running[kb]
        if job.error:
            traceback.print_exception(type(job.error), job.error, job.error.__traceback__)
        job.run_checks(kb)


_registered: List[_Registered] = []  # the shared library has pointers to these objects; the list keeps them alive


def bench(
    fn: Optional[Callable[..., None]] = None,
    *,
    op: Optional[str] = None,
    impl: str = "default",
    sizes: Optional[Dict[str, str]] = None,
    origin: Optional[str] = None,
    rung: int = 0,
    note: Optional[str] = None,
    **axes: Sequence[Any],
) -> Any:
    """Registers a function as a benchmark, which kbench.main() runs. For example:

        @kbench.bench(n=[1024, 4096], impl="sorted")
        def median(kb, n):
            x = ...
            kb.time(lambda: sorted(x)[n // 2], host=True)
            kb.check(lambda output: output == expected)

    op: name of the operation; by default the function's name.
    impl: name of the implementation. The first implementation of an operation is the baseline.
    sizes: values of the axes for each category of the option --size, whole numbers, for example {"small": "n=1024",
        "large": "n=1M m=1,2"}. The function gets these axes as keyword arguments, too.
    origin, rung, note: where the implementation comes from, its step in a ladder of optimisations, and its
        description; all three are stored in the records.
    axes: parameters of the benchmark, each a list of ints, floats or strings. The function gets one value of each axis
        as a keyword argument.
    Raises Error for an invalid axis."""

    def register(f: Callable[..., None]) -> Callable[..., None]:
        name = op or getattr(f, "__name__", "")
        if not callable(f) or not name:
            raise Error(f"kbench.bench registers a function or, with op=, a callable object, not {f!r}.")
        _registered.append(_Registered(f, name, impl, axes, sizes or {}, origin, _whole("rung", rung), note))
        return f

    return register if fn is None else register(fn)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs kbench's command line on the registered benchmarks, and ends the process with its exit code. --help lists
    the options.

    argv: the command-line options; by default those of the script.

    Each case runs in a worker process, which is the same script with the same command line. A script read from
    stdin cannot be started again, so the cases of such a script run in the script's own process, as with
    --no-isolate.

    In a notebook or at a Python prompt, main takes options only from argv, runs all cases in the current process,
    prints to sys.stdout, and returns the exit code."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if not script and sys.argv[0] not in ("-c", "-"):  # a notebook's sys.argv holds options of Jupyter
        return _shown(["kbench", *(argv or ()), *(() if "--no-isolate" in (argv or ()) else ("--no-isolate",))])
    words = list(sys.argv if argv is None else [sys.argv[0], *argv])
    again = script or sys.argv[0] == "-c"
    if (not again or sys.argv[0] == "-") and "--no-isolate" not in words:
        words.append("--no-isolate")
    words[0] = words[0] or "kbench"
    if again and os.path.isfile(str(again)):
        os.environ["KBENCH_SCRIPT"] = os.path.abspath(str(again))  # identifies the program in the records
    sys.exit(_call_main(words))


# --- functions with the interface of triton.testing ---------------------------------------------------------


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = min(int(at), len(ordered) - 1)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


# Holds one element while _triton_do_bench runs triton.testing.do_bench. A user may have replaced
# triton.testing.do_bench by kbench.do_bench; the element then becomes True, and Triton is not measured.
_in_triton: List[bool] = []
# (ms measured by kbench, ms measured by Triton) for each call of do_bench at the current point
_pairs: List[Tuple[float, float]] = []


def _triton_do_bench(fn: Callable[[], Any], options: Dict[str, Any]) -> Any:
    if _in_triton:
        _in_triton[0] = True
        return None
    _in_triton.append(False)
    try:
        from triton.testing import do_bench as theirs

        got = theirs(fn, **options)
        return None if _in_triton[0] else got
    except Exception:
        return None
    finally:
        _in_triton.clear()


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Optional[Iterable[Any]] = None,
    quantiles: Optional[Sequence[float]] = None,
    return_mode: str = "mean",
    host: Optional[bool] = None,
) -> Any:
    """Replaces triton.testing.do_bench: the arguments and the return value in ms are the same, but kbench measures the
    time. The L2 cache is evicted before each sample, launches wait at a gate on the GPU, and the timer's bias is
    subtracted.

    warmup: ignored; kbench warms up until the times reach a steady state.
    rep: milliseconds of sampling; with 0, kbench takes as few samples as possible.
    grad_to_none: tensors whose .grad is set to None before each sample.
    quantiles: quantiles of the samples to return, for example [0.5, 0.2, 0.8]; do_bench returns a number for one
        quantile, a list for several. Replaces return_mode.
    return_mode: "min", "max", "mean", "median" or "all" (the list of samples).
    host: True for work on the host.
    Raises Error if kbench measured no time. Flags of an unreliable time (NOISY, UNSETTLED, FEW, ...) become
    warnings.

    If Triton is installed, triton.testing.do_bench times GPU work as well, with the same arguments. After the
    call, do_bench.last is the pair (ms measured by kbench, ms measured by Triton). If do_bench returns several
    quantiles, the pair in do_bench.last holds the first quantile of each tool; if do_bench returns a list of
    samples, the pair holds the medians. Without Triton, and for work on the host, do_bench.last is None."""
    do_bench.last = None  # type: ignore[attr-defined]
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise Error(f"return_mode='{return_mode}' is unknown. Valid values are min, max, mean, median and all.")
    _number("rep", rep)
    if quantiles is not None and not all(0 <= q <= 1 for q in quantiles):
        raise Error(f"quantiles={quantiles} must be numbers from 0 to 1.")
    tensors = list(grad_to_none or [])

    def clear_gradients() -> None:
        for t in tensors:
            t.grad = None

    # rep=0 becomes a tiny max_time, because max_time=0 would select the default of one second
    record = time(fn, before=clear_gradients if tensors else None, host=host, max_time=max(rep / 1000, 1e-9))
    if record.time_ms is None:
        raise Error(repr(record))
    for flag in record.flags or []:
        if flag != "UNVERIFIED":  # do_bench has no check
            warnings.warn(f"kbench.do_bench: the time has the flag {flag}", stacklevel=2)
    samples = record.samples_ms
    got: Any
    if quantiles is not None:
        got = [_quantile(samples, q) for q in quantiles]
        got = got[0] if len(got) == 1 else got
    elif return_mode == "all":
        got = list(samples)
    else:
        got = {
            "min": min(samples),
            "max": max(samples),
            "mean": sum(samples) / len(samples),
            "median": record.time_ms,
        }[return_mode]
    options = dict(warmup=warmup, rep=rep, grad_to_none=tensors or None, quantiles=quantiles, return_mode=return_mode)
    theirs = None if host else _triton_do_bench(fn, options)
    if theirs is not None:
        one = lambda v: float(v if not isinstance(v, list) else v[0] if quantiles is not None else _quantile(v, 0.5))
        do_bench.last = one(got), one(theirs)  # type: ignore[attr-defined]
        _pairs.append(do_bench.last)  # type: ignore[attr-defined]
    return got


do_bench.last = None  # type: ignore[attr-defined]


class Benchmark:
    """A sweep with the arguments of triton.testing.Benchmark: the parameters x_names take the values x_vals, and
    each of line_vals gives one curve of the plot."""

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Dict[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Optional[Sequence[Tuple[str, str]]] = None,
        color: Any = None,
    ) -> None:
        self.x_names, self.x_vals, self.line_arg, self.line_vals = (
            list(x_names),
            list(x_vals),
            line_arg,
            list(line_vals),
        )
        self.line_names, self.plot_name, self.args = list(line_names), plot_name, dict(args)
        self.xlabel, self.ylabel, self.x_log, self.y_log, self.styles = xlabel, ylabel, x_log, y_log, styles
        columns = self.x_names + self.line_names
        if len(self.line_names) != len(self.line_vals) or len(set(columns)) < len(columns):
            raise Error(
                f"Benchmark '{plot_name}' needs a name in line_names for each value in line_vals, and different names: "
                f"x_names={self.x_names}, line_vals={self.line_vals}, line_names={self.line_names}."
            )

    def points(self) -> List[Dict[str, Any]]:
        """Returns the values of x_names at each point. Raises ValueError if an entry of x_vals does not have as many
        values as x_names."""
        one = [v if isinstance(v, (list, tuple)) else [v] * len(self.x_names) for v in self.x_vals]
        for values in one:
            if len(values) != len(self.x_names):
                raise ValueError(f"x_vals has {values}, but x_names has {len(self.x_names)} names: {self.x_names}")
        return [dict(zip(self.x_names, values)) for values in one]


class Mark:
    """A function under @kbench.perf_report. Mark.run measures the decorated function, prints tables and writes
    files."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Any) -> None:
        self.fn, self.benchmarks = fn, benchmarks

    def _rows(self, b: Benchmark, **given: Any) -> List[Dict[str, Any]]:
        """One dict per point, with four keys per curve: NAME, NAME-min, NAME-max and NAME-pair. NAME-pair is
        do_bench.last if the function called do_bench once, otherwise None."""
        rows = []
        for point in b.points():
            row = dict(point)
            for value, name in zip(b.line_vals, b.line_names):
                del _pairs[:]
                got = self.fn(**point, **{b.line_arg: value}, **b.args, **given)
                y, low, high = got if isinstance(got, (list, tuple)) else (got, None, None)
                row[name], row[name + "-min"], row[name + "-max"] = y, low, high
                row[name + "-pair"] = _pairs[0] if len(_pairs) == 1 else None
            rows.append(row)
        return rows

    def _plot(self, b: Benchmark, rows: List[Dict[str, Any]], path: Optional[str], show: bool) -> bool:
        """Returns True if a file was written."""
        try:
            import matplotlib.pyplot as plot
        except ImportError:
            print("kbench: matplotlib is not installed, so no figure is drawn", file=sys.stderr)
            return False
        plot.figure()
        for i, name in enumerate(b.line_names):
            style = {"color": b.styles[i][0], "ls": b.styles[i][1]} if b.styles else {}
            x = [r[b.x_names[0]] for r in rows]
            plot.plot(x, [r[name] for r in rows], label=name, **style)
            if all(r[name + "-min"] is not None and r[name + "-max"] is not None for r in rows):
                plot.fill_between(
                    x, [r[name + "-min"] for r in rows], [r[name + "-max"] for r in rows], alpha=0.15
                )
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
        return bool(path)

    def _print(self, b: Benchmark, rows: List[Dict[str, Any]], keys: List[str]) -> None:
        """If the function called do_bench, two columns follow kbench's time: the time that Triton's do_bench
        measured, and by how many percent Triton's time differs from kbench's time."""
        head, columns = [], []
        for key in keys:
            head.append(key)
            columns.append([f"{r[key]:.6g}" if isinstance(r[key], float) else str(r[key]) for r in rows])
            pairs = [r.get(key + "-pair") for r in rows] if key in b.line_names else []
            if any(pairs):
                head += ["triton ms", "diff %"]
                columns.append([f"{p[1]:.6g}" if p else "-" for p in pairs])
                columns.append([f"{100 * (p[1] / p[0] - 1):+.1f}" if p and p[0] else "-" for p in pairs])
        widths = [max(map(len, [name, *column])) for name, column in zip(head, columns)]
        print(_harmless(b.plot_name + ":"))
        for line in [head, *zip(*columns)]:
            print(_harmless("  ".join(text.rjust(w) for text, w in zip(line, widths))))

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        *,
        diff_col: bool = False,
        save_precision: int = 6,
        **given: Any,
    ) -> Any:
        """Measures every point of every curve of the plot. Keyword arguments that run() does not know are passed
        to the measured function.

        show_plots: show each figure; needs matplotlib.
        print_data: print a table of each Benchmark. If the function calls do_bench once per point and Triton is
            installed, the table also has the columns "triton ms" (time of Triton's do_bench) and "diff %" (its
            difference from kbench's time).
        save_path: a folder, which gets PLOT_NAME.csv (numbers with save_precision decimal places), PLOT_NAME.png if
            matplotlib is installed, and results.html, a page with both.
        return_df: return a table with the columns x_names and line_names. run() returns a pandas DataFrame if
            pandas is installed, otherwise a list of dicts. For a list of Benchmarks, run returns a list of tables.
        diff_col: if the plot has two curves, add a column Diff: the value of the second curve minus the value of
            the first curve."""
        several = isinstance(self.benchmarks, (list, tuple))
        found, page = [], []
        try:
            for b in self.benchmarks if several else [self.benchmarks]:
                rows = self._rows(b, **given)
                keys = b.x_names + b.line_names
                if diff_col and len(b.line_names) == 2:
                    keys = keys + ["Diff"]
                    for r in rows:
                        r["Diff"] = r[b.line_names[1]] - r[b.line_names[0]]
                if print_data:
                    self._print(b, rows, keys)
                show = lambda v: f"{v:.{save_precision}f}" if isinstance(v, float) else str(v)
                lines = [keys] + [[show(r[k]) for k in keys] for r in rows]
                if save_path:
                    os.makedirs(save_path, exist_ok=True)
                    with _replacing(os.path.join(save_path, b.plot_name + ".csv")) as f:
                        f.writelines(",".join(map(_cell, line)) + "\n" for line in lines)
                drawn = False
                if save_path or show_plots:
                    path = os.path.join(save_path, b.plot_name + ".png") if save_path else None
                    drawn = self._plot(b, rows, path, show_plots)
                page.append((b.plot_name, drawn, lines))
                found.append([{k: r[k] for k in keys} for r in rows])
        finally:
            if save_path:
                self._write_page(save_path, page)
        if not return_df:
            return None
        try:
            import pandas

            found = [pandas.DataFrame(rows) for rows in found]
        except ImportError:
            pass
        return found if several else found[0]

    def _write_page(self, folder: str, page: List[Tuple[str, bool, List[List[str]]]]) -> None:
        """Called also if a later Benchmark failed."""
        os.makedirs(folder, exist_ok=True)
        with _replacing(os.path.join(folder, "results.html")) as f:
            f.write('<html><head><meta charset="utf-8"></head><body>\n')
            for name, drawn, lines in page:
                f.write(f"<h2>{_markup(name)}</h2>\n")
                if drawn:
                    f.write(f'<img src="{_markup(name)}.png"/>\n')
                rows = ("".join(f"<td>{_markup(text)}</td>" for text in line) for line in lines)
                f.write("<table>" + "".join(f"<tr>{row}</tr>\n" for row in rows) + "</table>\n")
            f.write("</body></html>\n")


def perf_report(benchmarks: Any) -> Callable[[Callable[..., Any]], Mark]:
    """Returns a decorator like triton.testing.perf_report. The decorated function returns the time in ms of one point,
    or (ms, min, max).
    benchmarks: a Benchmark or a list of Benchmarks."""
    return lambda fn: Mark(fn, benchmarks)


# --- the judge: tests a submitted function for known ways to appear fast -------------------------------------

# The judge is designed so that the candidate controls neither the expected result nor the clock. The candidate
# runs in a separate process, which receives inputs one call at a time and holds no expected values. The judge's
# process makes the inputs, computes the expected results, and decides the verdict. The measurement engine of
# kbench.h times the candidate and the reference. For tensors, the expected result is the reference's result in
# double precision, and the tolerance grows with the error of the reference in its own precision. The inputs change
# before each sample, and the judge's process checks outputs of timed calls. For the candidate, the judge compares
# the time that the engine reports with a time by the clock of the judge's own process. For the reference, the
# judge compares the time that the engine reports with the reference's time in a process that never ran a
# candidate.

# key: name of a flag; value: the verdict that the flag causes, and the meaning of the flag
_FLAGS = {
    "NO_WORK": ("REJECTED", "the function returned nothing"),
    "PARTIAL_WRITE": ("WRONG", "only part of the output was computed"),
    "INPUT_RETURNED": ("REJECTED", "the function returned an input as its output"),
    "INPUT_CHANGED": ("REJECTED", "the function overwrote an input"),
    "MEMOIZED": ("REJECTED", "the function returned or reused the result of an earlier call"),
    "PRECOMPUTED": ("REJECTED", "the function returned the result of the public example for other inputs"),
    "SEED_BOUND": ("REJECTED", "the function is correct only for the public example"),
    "PHASE_DEPENDENT": ("REJECTED", "the function is correct only in its first calls"),
    "OUTPUT_ALIASED": ("REJECTED", "the output of an earlier call changed when the function was called again"),
    "LATE_WRITE": ("REJECTED", "the output changed after the function had returned"),
    "THREAD": ("REJECTED", "threads or processes went on working after the function had returned"),
    "LAZY": ("REJECTED", "the output is an object that computes its values on access"),
    "TIMER_PATCHED": ("REJECTED", "the candidate replaced clock functions"),
    "CHECK_PATCHED": ("REJECTED", "the candidate replaced functions that other code relies on"),
    "MODULE_SHADOW": ("REJECTED", "the candidate replaced a module by a different module of the same name"),
    "FORGED_RESULT": ("REJECTED", "the candidate's process sent a reply that the judge had not asked for"),
    "SNOOPED": ("REJECTED", "the function returned a planted wrong result that it had found in memory"),
    "EXITED": ("REJECTED", "the candidate's process ended"),
    "LOW_PRECISION": ("REJECTED", "the output is less precise than its element type"),
    "CONSTANT_OUTPUT": ("REJECTED", "the output is the same for all inputs"),
    "SIDE_STREAM": ("REJECTED", "work ran on a stream that the caller's stream does not wait for"),
    "SYNC_INSIDE": ("REJECTED", "the function synchronises with the GPU"),
    "TRANSFER": ("REJECTED", "the function copies between host and GPU"),
    "OUT_OF_BOUNDS": ("REJECTED", "the function wrote outside its outputs"),
    "FALLBACK": ("REJECTED", "the function caught an error and used other code for the work"),
    "LOOKS_AROUND": ("REJECTED", "the function inspected its caller or its environment"),
    "CLOCK_MISMATCH": ("REJECTED", "the judge's clock shows a longer time than the candidate's process"),
    "BASELINE_SLOWED": ("REJECTED", "the reference is slower in the candidate's process than in a fresh process"),
    "CUDA_ERROR": ("WRONG", "the GPU reported an error"),
    "WORK_CHANGED": ("REJECTED", "the function changed the work that it submits while it was timed"),
    "OVERRUN": ("REJECTED", "the function wrote outside a buffer"),
    "STALE": ("REJECTED", "the output of the last launch differs from the output of the first launch"),
    "VERIFY_FAIL": ("WRONG", "the output is wrong"),
    "ABOVE_ROOF": ("SUSPECT", "the rate is above the measured peak bandwidth or peak arithmetic rate"),
    "ALLOC_INSIDE": ("SUSPECT", "the function allocates memory"),
    "NOT_COLD": ("SUSPECT", "the inputs may have stayed in cache"),
    "OOM": ("SUSPECT", "there was not enough memory to run the function together with the reference"),
    "CLOCK_UNCHECKED": ("WARN", "the host takes longer than the GPU, so no second clock confirms the GPU time"),
    "NO_TIME": ("WARN", "no time was measured"),
    "DATA_SHORTCUT": ("REJECTED", "the function is correct only for some kinds of data"),
    "NAN_PASS": ("WRONG", "the output is wrong for inputs that contain NaN or infinity"),
    "UNINIT_READ": ("REJECTED", "the output depends on uninitialised memory"),
    "FILE_LEFT": ("WARN", "the candidate wrote files"),
    "SHAPE_BOUND": ("WRONG", "the function is correct only for the sizes of the public example"),
    "LAYOUT_BOUND": ("WRONG", "the output is wrong for inputs that are not contiguous or not aligned"),
    "WRONG_LAYOUT": ("WRONG", "type, shape or element type of the output are not those expected"),
    "WRONG": ("WRONG", "the output is wrong"),
    "FLAKY": ("WRONG", "the output is sometimes wrong for the same inputs"),
    "CRASHED": ("WRONG", "the function raised an exception"),
    "TIMEOUT": ("WRONG", "the function did not return in time"),
    "INVALID_TASK": ("INVALID_TASK", "the task cannot tell correct results from wrong ones"),
    "HOST_BOUND": (
        "WARN",
        "more than 5 % of the time is the judge's own overhead, so the measured speedup is too close to 1",
    ),
    "GLOBAL_STATE": ("WARN", "the candidate changed settings of the whole process"),
    "TASK_SHARED": ("WARN", "candidate and reference are in one file, so the judge's process imports both"),
    "NONDETERMINISTIC": ("NOTE", "the same inputs give different bits, within the tolerance"),
}
_WATCHED = (
    "builtins",
    "time",
    "math",
    "cmath",
    "operator",
    "random",
    "statistics",
    "timeit",
    "gc",
    "json",
    "pickle",
    "hashlib",
    "struct",
    "array",
    "itertools",
    "functools",
    "threading",
    "numpy",
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.testing",
    "torch.Tensor",
    "torch.cuda",
    "torch.cuda.Event",
    "torch.cuda.Stream",
    "triton.testing",
    "cupy",
    "kbench",
)
# levels of flags, the most severe first; the most severe level of a verdict's flags is the verdict
_FAILS = ("INVALID_TASK", "REJECTED", "WRONG", "SUSPECT")
# flags of the engine that report that the benchmark function failed
_RAISED = ("BAD_CASE", "NO_LOOP", "LEFT_EARLY")
_OWN_MODULES = _WATCHED[: _WATCHED.index("numpy")]
# if the candidate adds an attribute to a class in _CLASSES_WATCHED, this counts as a change
_CLASSES_WATCHED = ("torch.Tensor", "torch.cuda.Event", "torch.cuda.Stream")
_CLOCKS = ("time.", "timeit.", "torch.cuda.synchronize", "torch.cuda.Event.", "torch.cuda.Stream.")
_CLOCKS += ("triton.testing.", "kbench.")
# folders in which compilers store their results
_COMPILERS_OWN = (".triton", ".nv", ".cache", "torchinductor_")


class _Other:
    """Stands for a value whose type _encode does not support."""

    def __init__(self, name: str) -> None:
        self.name = name


def _bytes_of_tensor(v: Any, torch: Any, numpy: Any) -> bytes:
    """Returns the elements of a tensor as bytes. Calls the methods of the class torch.Tensor, because the tensor
    object may override its methods."""
    kind = torch.Tensor
    flat = kind.reshape(kind.contiguous(kind.cpu(kind.detach(v))), (-1,)).view(torch.uint8)
    return flat.numpy().tobytes() if numpy is not None else bytes(flat.tolist())


def _encode(value: Any, layout: bool = False) -> bytes:
    """Serialises a value in a format that is exact, and that is safe to read from an untrusted process. A value whose
    type the format does not support is replaced by the name of its type. layout=True: also serialises the strides of
    tensors that are not contiguous."""
    import array

    numpy, torch, blobs = sys.modules.get("numpy"), sys.modules.get("torch"), []

    def tree(v: Any) -> Any:
        kind = type(v)
        if v is None or kind is bool or kind is str:
            return ["v", v]
        if kind is int:
            return ["i", str(v)]
        if kind is float:
            return ["f", v.hex()]
        if kind is complex:
            return ["c", v.real.hex(), v.imag.hex()]
        if kind is list or isinstance(v, tuple):
            tag = "l" if kind is list else "t"
            # calls tuple.__iter__ of the base class, because a subclass of tuple may override it
            v = v if kind is list else tuple(tuple.__iter__(v))
            if v and all(type(e) is float for e in v):
                blobs.append(array.array("d", v).tobytes())
                return [tag + "d", len(v)]
            return [tag, [tree(e) for e in v]]
        if kind is dict:
            return ["m", [[tree(k), tree(e)] for k, e in v.items()]]
        if (
            numpy is not None
            and (kind is numpy.ndarray or isinstance(v, numpy.generic))
            and v.dtype.kind in "biufc"
        ):
            blobs.append(v.tobytes())
            return ["a" if kind is numpy.ndarray else "s", v.dtype.str, list(v.shape), len(blobs[-1])]
        if torch is not None and kind is torch.Tensor:
            own = [k for k in vars(v) if callable(vars(v)[k])]
            if own:
                return ["o", f"tensor whose method {own[0]} was replaced"]
            blobs.append(_bytes_of_tensor(v, torch, numpy))
            strides = list(v.stride()) if layout and not v.is_contiguous() else None
            return [
                "T",
                str(v.dtype).replace("torch.", ""),
                list(v.shape),
                str(v.device),
                len(blobs[-1]),
                strides,
            ]
        return ["o", f"{kind.__module__}.{kind.__qualname__}"]

    head = json.dumps(tree(value)).encode()
    return struct.pack("<I", len(head)) + head + b"".join(blobs)


def _decode(data: bytes) -> Any:
    """Returns the value that _encode has serialised. Raises an exception if the data is malformed."""
    import array

    (size,) = struct.unpack_from("<I", data)
    at = 4 + size

    def take(n: int) -> bytes:
        nonlocal at
        at += n
        return data[at - n : at]

    def value(t: Any) -> Any:
        tag = t[0]
        if tag == "v":
            return t[1]
        if tag == "i":
            return int(t[1])
        if tag == "f":
            return float.fromhex(t[1])
        if tag == "c":
            return complex(float.fromhex(t[1]), float.fromhex(t[2]))
        if tag in ("ld", "td"):
            numbers = array.array("d")
            numbers.frombytes(take(8 * t[1]))
            return list(numbers) if tag == "ld" else tuple(numbers)
        if tag in ("l", "t"):
            values = [value(e) for e in t[1]]
            return values if tag == "l" else tuple(values)
        if tag == "m":
            return {value(k): value(e) for k, e in t[1]}
        if tag in ("a", "s"):
            import numpy

            flat = numpy.frombuffer(take(t[3]), numpy.dtype(t[1])).reshape(t[2]).copy()
            return flat if tag == "a" else flat[()]
        if tag == "T":
            import torch

            n = t[4]
            flat = torch.frombuffer(bytearray(take(n)), dtype=torch.uint8) if n else torch.empty(0)
            tensor = flat.view(getattr(torch, t[1])) if n else flat.to(getattr(torch, t[1]))
            tensor = tensor.reshape(t[2]).to(t[3])
            tensor._strides = t[5]
            return tensor
        return _Other(str(t[1]))

    return value(json.loads(data[4:at]))


# --- in the candidate's process -----------------------------------------------------------------------------


def _code_of(value: Any) -> Tuple[Any, ...]:
    function = value.fget if isinstance(value, property) else value
    if isinstance(value, (staticmethod, classmethod)):
        function = value.__func__
    return getattr(function, "__code__", None), getattr(function, "__defaults__", None)


def _watched() -> Dict[str, Tuple[Any, Any]]:
    """Functions that a candidate must not replace: maps names to the function and its code. The dict includes the
    methods of the classes in kbench.py."""
    found = {}
    for name in _WATCHED:
        parts = name.split(".")
        place = sys.modules.get(parts[0])
        for part in parts[1:]:
            place = getattr(place, part, None)
        whole = name == "kbench" or name in _CLASSES_WATCHED
        for key, value in list(vars(place).items()) if place is not None else []:
            known = not key.startswith("_") or key in ("__import__", "__build_class__")
            if callable(value) and (known or whole and not isinstance(value, type)):
                found[f"{name}.{key}"] = value, _code_of(value)
    for own in [v for v in vars(sys.modules[__name__]).values() if isinstance(v, type) and v.__module__ == __name__]:
        for key, value in list(vars(own).items()):
            of = callable(value) or isinstance(value, (staticmethod, classmethod, property))
            if of and not isinstance(value, type):
                found[f"kbench.{own.__qualname__}.{key}"] = value, _code_of(value)
    return found


def _settings() -> Dict[str, Any]:
    import gc

    state = {
        "gc": gc.isenabled(),
        "switch interval": sys.getswitchinterval(),
        "trace": sys.gettrace() is None,
        "processors": sorted(os.sched_getaffinity(0)),
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "folder": os.getcwd(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = [
            torch.get_float32_matmul_precision(),
            torch.backends.cudnn.benchmark,
            torch.get_num_threads(),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
        ]
        if torch.cuda.is_initialized():
            state["persisting L2"] = _persisting_l2_bytes()
    return state


def _persisting_l2_bytes() -> int:
    n, library = C.c_size_t(0), _library()
    said = library.handle.cudaDeviceGetLimit(C.byref(n), 6) if library.cuda else 1
    return 0 if said else n.value


def _import_function(spec: Dict[str, str], name: str = "candidate") -> Any:
    import importlib
    import importlib.util

    if "module" in spec:
        place = importlib.import_module(spec["module"])
    else:
        sys.path.append(os.path.dirname(os.path.abspath(spec["path"])))
        found = importlib.util.spec_from_file_location(name, spec["path"])
        if found is None or found.loader is None:
            raise ImportError(f"{spec['path']} is no Python file")
        place = importlib.util.module_from_spec(found)
        sys.modules[name] = place
        found.loader.exec_module(place)
    for part in spec["name"].split("."):
        place = getattr(place, part)
    return place


def _lay_out(value: Any, layout: str) -> Any:
    """The layout "strided" leaves a gap after each element; the others misalign numpy arrays by one byte and torch
    tensors by one element."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if isinstance(value, tuple):
        return tuple(_lay_out(v, layout) for v in value)
    if numpy is not None and type(value) is numpy.ndarray and value.ndim:
        if layout == "strided":
            wide = numpy.empty(value.shape[:-1] + (2 * value.shape[-1],), value.dtype)
            wide[..., ::2] = value
            return wide[..., ::2]
        raw = numpy.empty(value.nbytes + 1, numpy.uint8)[1:]
        raw[:] = numpy.frombuffer(value.tobytes(), numpy.uint8)
        return raw.view(value.dtype).reshape(value.shape)
    if torch is not None and type(value) is torch.Tensor and value.dim():
        if layout == "strided":
            return value.repeat_interleave(2, dim=-1)[..., ::2]
        raw = torch.empty(value.numel() + 1, dtype=value.dtype, device=value.device)[1:]
        return raw.view(value.shape).copy_(value)
    return value


_GUARD, _GUARD_BYTE = 256, 0xAB


class _Guarded:
    """Copies of the argument tensors, each between two guard bands, so that writes out of bounds are detected."""

    def __init__(self, args: Any) -> None:
        torch = sys.modules.get("torch")
        self.bands: List[Any] = []
        self.args = args if torch is None else tuple(self._inside(torch, v) for v in args)

    def _inside(self, torch: Any, v: Any) -> Any:
        if type(v) is not torch.Tensor or not v.dim() or not v.numel() or v.requires_grad:
            return v
        size = v.numel() * v.element_size()
        raw = torch.full((size + 2 * _GUARD,), _GUARD_BYTE, dtype=torch.uint8, device=v.device)
        self.bands += [raw[:_GUARD], raw[_GUARD + size :]]
        return raw[_GUARD : _GUARD + size].view(v.dtype).view(v.shape).copy_(v)

    def broken(self) -> bool:
        return any(bool((band != _GUARD_BYTE).any()) for band in self.bands)


def _overwrite(into: Any, value: Any) -> Any:
    """Copies `value` into the existing object `into`, or replaces the object if it cannot hold the value."""
    if isinstance(into, tuple):
        return tuple(_overwrite(i, v) for i, v in zip(into, value))
    if isinstance(into, list):
        into[:] = [_overwrite(i, v) for i, v in zip(into, value)] if len(into) == len(value) else value
        return into
    if _is_array(into) and into.shape and into.shape == value.shape:
        if _module_of(into) == "torch":
            # a write to .data does not increase the version counter, so the candidate cannot detect the write by it
            into.data.copy_(value)
        else:
            into[...] = value
        return into
    return value


def _poison(sizes: Sequence[int], value: float) -> None:
    """Allocates blocks of the sizes of the outputs, fills them with a wrong value, and frees them. Allocators reuse
    freed memory, so an output element that the candidate does not write has the wrong value."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        held = [numpy.full(max(1, n // 8), value) for n in sizes for _ in range(4)]
        del held
    if torch is not None:
        place = "cuda" if torch.cuda.is_initialized() else "cpu"
        byte = _poison_byte(value)
        held = [
            torch.full((max(1, n),), byte, dtype=torch.uint8, device=place) for n in sizes for _ in range(3)
        ]
        del held


def _poison_byte(value: float) -> int:
    """Elements made of 0xFF bytes are NaN, and elements made of 0x7B bytes are large numbers, in every floating-point
    format."""
    return 0xFF if value != value else 0x7B


class _Fences:
    """Of five blocks per output, the second and fourth are freed: torch's allocator usually places the output there,
    and a write past its end then changes a block that is still allocated."""

    def __init__(self, sizes: Sequence[int], value: float) -> None:
        torch = sys.modules.get("torch")
        self.byte, self.kept = _poison_byte(value), []
        if torch is None or not torch.cuda.is_initialized():
            return
        free = []
        for n in sizes:
            if 0 < n <= 64 << 20:
                blocks = [
                    torch.full((n,), self.byte, dtype=torch.uint8, device="cuda") for _ in range(5)
                ]
                self.kept += blocks[::2]
                free += blocks[1::2]
        del free

    def broken(self) -> bool:
        return any(bool((block != self.byte).any()) for block in self.kept)


def _shares(out: Any, args: Any) -> bool:
    numpy = sys.modules.get("numpy")
    arrays = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if _is_array(o)]
    for v in args if isinstance(args, (tuple, list)) else ():
        if out is v and isinstance(v, (list, dict)):
            return True
        if numpy is not None and isinstance(v, numpy.ndarray):
            if any(isinstance(o, numpy.ndarray) and o.size and numpy.may_share_memory(o, v) for o in arrays):
                return True
        if _module_of(v) == "torch" and hasattr(v, "data_ptr"):
            (first, end), of = _ends(v), [_ends(o) for o in arrays if hasattr(o, "data_ptr")]
            if any(a < end and first < b for a, b in of):
                return True
    return False


def _ends(tensor: Any) -> Tuple[int, int]:
    if not tensor.numel():
        return 0, 0
    last = sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride()))
    at = tensor.data_ptr()
    return at, at + (last + 1) * tensor.element_size()


class _Watch:
    """Records accesses to call frames, environment variables, /proc and the garbage collector, and exceptions that
    the candidate's code catches."""

    def __init__(self, path: str) -> None:
        self.path, self.active, self.seen = path, False, []  # type: Tuple[str, bool, List[str]]
        self.errors: List[str] = []
        if not path:
            return
        sys.addaudithook(self._event)
        watch = self

        class Variables(type(os.environ)):  # type: ignore
            def __getitem__(self, key: str) -> str:
                if not str(key).startswith(watch._USUAL):
                    watch._note(f"the variable {key}")
                return super().__getitem__(key)

        os.environ.__class__ = Variables  # type: ignore

    def _note(self, what: str) -> None:
        if not self.active:
            return
        self.active = False  # sys._getframe raises an audit event, which would call this hook again
        frame: Any = sys._getframe(2)
        while frame and os.path.basename(frame.f_code.co_filename) in self._BETWEEN:
            frame = frame.f_back
        if frame and frame.f_code.co_filename == self.path:
            self.seen.append(what)
        self.active = True

    _BETWEEN = ("inspect.py", "traceback.py", "os.py", "_collections_abc.py", "<frozen os>")
    _BETWEEN += ("<frozen _collections_abc>",)
    _USUAL = ("HOME", "PATH", "TMPDIR", "XDG_", "LD_", "CUDA", "NVIDIA", "TRITON", "TORCH", "PYTORCH", "OMP_")
    _EVENTS = ("sys._getframe", "gc.get_objects", "gc.get_referrers", "gc.get_referents")

    def _event(self, event: str, args: Any) -> None:
        if self.active and (event in self._EVENTS or event == "open" and str(args[0]).startswith("/proc/")):
            self._note(event if event != "open" else str(args[0]))

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        if event == "exception":
            expected = (KeyError, AttributeError, IndexError, StopIteration, GeneratorExit)
            if not issubclass(arg[0], expected):
                self.errors.append(f"{arg[0].__name__}: {arg[1]}"[:200])
        return self._trace

    def call(self, fn: Callable[..., Any], args: Any, trace: bool) -> Any:
        before = sys.gettrace()
        if trace:
            sys.settrace(self._trace)
        self.active = True
        try:
            return fn(*args)
        finally:
            self.active = False
            if trace:
                sys.settrace(before)


class _Server:
    """Answers the judge's requests in the candidate's process: each public method handles one kind of request. A
    _Server holds no expected results."""

    def __init__(self) -> None:
        self.fn: Any = None
        self.args: Any = ()
        self.held: List[Any] = []  # the outputs of the last three calls
        self.batch: List[Any] = []  # the next request "go" calls fn once for each element
        self.kept: Dict[int, List[Any]] = {}  # key: `which` of a request "keep"; value: the stored inputs
        self.outputs: List[Any] = []
        self.baselines: Dict[str, Callable[..., Any]] = {}
        self.pool: Any = None

    def load(self, m: Dict[str, Any]) -> Dict[str, Any]:
        if m.get("library"):
            os.environ["KBENCH_LIB"] = m["library"]
        for name in [w for w in _WATCHED if w in _OWN_MODULES] + m["modules"]:
            __import__(name)
        self.gpu = m.get("gpu") is not None
        if self.gpu:
            sys.modules["torch"].cuda.set_device(m["gpu"])
            sys.modules["torch"].cuda.init()
        self.watch = _Watch(m["spec"].get("path", ""))
        self.note_state()
        try:
            self.fn = _import_function(m["spec"])
        except BaseException as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {}

    def note_state(self) -> None:
        self.before, self.settings = _watched(), _settings()
        names = [name for name in _WATCHED + ("triton",) if name in sys.modules]
        self.modules = {name: sys.modules[name] for name in names}

    def synchronize(self) -> None:
        """Calls the CUDA library directly, because the candidate may have replaced the functions of torch."""
        if self.gpu:
            _library().handle.cudaDeviceSynchronize()

    def call(self, m: Dict[str, Any]) -> Dict[str, Any]:
        expected = m.get("decoy")  # noqa: F841 - a wrong result, planted for a candidate that reads call frames
        guarded = None
        if m.get("overwrite"):
            self.args = _overwrite(self.args, m["args"])
        elif m.get("layout"):
            self.args = _lay_out(m["args"], m["layout"])
        else:
            guarded = _Guarded(m["args"])
            self.args = guarded.args
        if m.get("late"):
            self._late(m["args"])
        _poison(m.get("sizes", ()), m.get("poison", math.nan))
        fences = _Fences(m.get("sizes", ()), m.get("poison", math.nan))
        self.watch.errors = []
        if m.get("synchronized"):
            self.synchronize()
        try:
            out = self.watch.call(self.fn, self.args, bool(m.get("trace")))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}
        if m.get("synchronized"):
            self.synchronize()
        reply: Dict[str, Any] = {"out": _encode(self.args) if m.get("inplace") else _encode(out, layout=True)}
        self.synchronize()
        reply["shares"] = _shares(out, self.args)
        reply["after"] = hashlib.sha256(_encode(self.args)).hexdigest()
        reply["outside"] = "an input" if guarded and guarded.broken() else "an output" if fences.broken() else ""
        reply["seen"], reply["errors"] = self.watch.seen[:4], self.watch.errors[:2]
        self.held = [out] + self.held[:2]
        return reply

    def _late(self, args: Any) -> None:
        """Fills the inputs on the current stream after a delay. A candidate on another stream that does not wait for
        the current stream reads wrong values."""
        torch = sys.modules["torch"]
        floats = [(into, value.detach().clone()) for into, value in zip(self.args, args) if self._is_late(torch, into)]
        for into, _ in floats:
            into.data.fill_(3.0)
        self.synchronize()
        torch.cuda._sleep(20_000_000)  # GPU cycles, about 10 ms
        for into, value in floats:
            into.data.copy_(value)

    @staticmethod
    def _is_late(torch: Any, value: Any) -> bool:
        return type(value) is torch.Tensor and value.is_cuda and value.is_floating_point()

    def again(self, m: Dict[str, Any]) -> Dict[str, Any]:
        self.synchronize()
        return {"out": _encode(self.held[m["which"]], layout=True)}

    def prepare(self, m: Dict[str, Any]) -> Dict[str, Any]:
        """Sets the inputs of the next request "go": the inputs in the message, or copies of the inputs that a request
        "keep" stored. If the message holds n, n calls use these inputs in rotation."""
        self.outputs = []
        some = m["batch"] if m["which"] is None else [_fresh_copies(args) for args in self.kept[m["which"]]]
        self.batch = [some[i % len(some)] for i in range(m["n"])] if m.get("n") else some
        self.synchronize()
        return {}

    def keep(self, m: Dict[str, Any]) -> Dict[str, Any]:
        """If the request "keep" holds fewer than n sets of inputs, each set is copied several times."""
        some = m["batch"]
        self.kept[m["which"]] = [_fresh_copies(args) for args in some for _ in range(m["n"] // len(some))]
        return {}

    def set_pool(self, m: Dict[str, Any]) -> Dict[str, Any]:
        self.pool = m["pool"]
        self.synchronize()
        return {}

    def change(self, m: Dict[str, Any]) -> Dict[str, Any]:
        for args, draw in zip(self.kept[m["which"]], m["draws"]):
            _fill(args, self.pool, draw)
        self.synchronize()
        return {}

    def touch(self, m: Dict[str, Any]) -> Dict[str, Any]:
        self.outputs = []
        for args, draw in zip(self.batch, m["draws"]):
            _fill(args, self.pool, draw)
        self.synchronize()
        return {}

    def go(self, m: Dict[str, Any]) -> Dict[str, Any]:
        fn = self.fn
        if m.get("keep", True):
            self.outputs = [fn(*args) for args in self.batch]
        else:
            for args in self.batch:
                fn(*args)
        if m.get("wait", True):
            self.synchronize()
        return {}

    def synchronized(self, m: Dict[str, Any]) -> Dict[str, Any]:
        self.synchronize()
        return {}

    def output(self, m: Dict[str, Any]) -> Dict[str, Any]:
        i = m["which"]
        return {"out": _encode(self.batch[i] if m.get("inplace") else self.outputs[i])}

    def ready(self, m: Dict[str, Any]) -> Dict[str, Any]:
        """The reference and the compiled reference are baselines of the comparison."""
        self.baselines = {"reference": _import_function(m["reference_spec"], "reference_of_the_task")}
        changed = self.report_changes({})["changed"]
        if not m["compiled"]:
            return {"changed": changed, "said": ""}
        try:
            import torch

            compiled = torch.compile(self.baselines["reference"], dynamic=False)
            compiled(*_copy(m["args"]))  # the first call compiles the reference
            self.synchronize()
            self.baselines["compiled"] = compiled
        except Exception as error:
            return {"changed": changed, "said": f"{type(error).__name__}: {error}"[:200]}
        # some functions were replaced by torch.compile, not by the candidate
        self.note_state()
        return {"changed": changed, "said": ""}

    def measure(self, m: Dict[str, Any]) -> Dict[str, Any]:
        m["pool"] = self.pool
        own = _TimedFunction(self.fn, m, m["keep"])
        baselines = {name: _TimedFunction(fn, m, ()) for name, fn in self.baselines.items()}
        records = {}
        for name, baseline in baselines.items():
            pair = {name: baseline, "candidate": own}
            for record in _measure_functions(pair, m):
                records[f"{record.implementation} beside {name}"] = record.to_dict()
        self.synchronize()
        reply: Dict[str, Any] = {"records": records, "counts": [c for c, _ in own.kept]}
        reply["out"] = _encode([out for _, out in own.kept])
        return reply

    def report_changes(self, m: Dict[str, Any]) -> Dict[str, Any]:
        changed = []
        for name, (value, code) in self.before.items():
            parts = name.split(".")
            place: Any = self.modules.get(parts[0])
            for part in parts[1:-1]:
                place = getattr(place, part, None)
            now = getattr(place, parts[-1], None) if not isinstance(place, type) else vars(place).get(parts[-1])
            if now is value and all(a is b for a, b in zip(_code_of(now), code)):
                continue
            if not self._by_torch_itself(name, now):
                changed.append(name)
        # attributes that were added to a watched class; a class that was imported after the first snapshot is ignored
        places = {name.rpartition(".")[0] for name in self.before}
        new = [(n, n.rpartition(".")[0]) for n in _watched() if n not in self.before]
        changed += [n for n, of in new if of in places and (of in _CLASSES_WATCHED or of.startswith("kbench."))]
        shadowed = [name for name, module in self.modules.items() if sys.modules.get(name) is not module]
        now_settings = _settings()
        return {
            "changed": changed,
            "shadowed": shadowed,
            "settings": [k for k, v in self.settings.items() if now_settings.get(k, v) != v],
        }

    @staticmethod
    def _by_torch_itself(name: str, now: Any) -> bool:
        """torch.compile wraps some functions of torch when it is loaded, but never a clock."""
        torch, code = sys.modules.get("torch"), getattr(now, "__code__", None)
        if torch is None or code is None or not name.startswith("torch.") or name.startswith(_CLOCKS):
            return False
        return "torch._dynamo" in sys.modules and code.co_filename.startswith(os.path.dirname(torch.__file__))

    def claim(self, m: Dict[str, Any]) -> Dict[str, Any]:
        return {"ms": _do_bench_ms(self.fn, m["args"])}


def _fresh_copies(args: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The copy of a tensor has the requires_grad of the tensor."""
    copies = _copy(args)
    for new, old in zip(copies, args):
        if getattr(old, "requires_grad", False):
            new.requires_grad_()
    return copies


def _do_bench_ms(fn: Callable[..., Any], args: Tuple[Any, ...]) -> float:
    from triton.testing import do_bench

    return float(do_bench(lambda: fn(*args), warmup=5, rep=20))


class _TimedFunction:
    """Each compared function has its own inputs, which get new random contents before each sample. keep: indices of
    the samples whose outputs are kept for checking."""

    def __init__(self, fn: Callable[..., Any], m: Dict[str, Any], keep: Sequence[int]) -> None:
        self.fn, self.draws, self.inplace, self.host = fn, m["draws"], m["inplace"], m["host"]
        self.pool = m["pool"]
        self.args, self.pristine, self.count = _copy(m["args"]), m["args"], 0
        self.ran, self.out = False, None
        self.keep, self.kept = set(keep), []  # type: Tuple[Any, List[Tuple[int, Any]]]

    def __call__(self, *args: Any) -> Any:
        self.out = None  # frees the last output before the next call
        self.out = self.fn(*args)
        # during a capture the work is only recorded, and no output exists
        self.ran = self.host or not sys.modules["torch"].cuda.is_current_stream_capturing()
        return self.out

    def before(self, *args: Any) -> None:
        if self.ran and self.count in self.keep:
            self.keep_output(self.out)
        self.ran = False
        if self.inplace:
            self.args = _overwrite(self.args, _copy(self.pristine))
        if self.draws:
            _fill(self.args, self.pool, self.draws[self.count % len(self.draws)])
        self.count += 1

    def keep_output(self, out: Any) -> None:
        self.kept.append((self.count, _copy(self.args if self.inplace else out)))

    @staticmethod
    def inputs_at(count: int, m: Dict[str, Any]) -> Tuple[Any, ...]:
        """Returns the function's inputs after `count` changes of their contents. Each change replaces all contents
        of the inputs, so only the last change is applied."""
        args = _copy(m["args"])
        if m["draws"] and count:
            _fill(args, m["pool"], m["draws"][(count - 1) % len(m["draws"])])
        return args


def _measure_functions(functions: Dict[str, _TimedFunction], m: Dict[str, Any]) -> List[Record]:
    interrupts, streams = _Interrupts(), _Streams()
    wrap = _plain if m["host"] else _on_stream
    jobs = {}
    for name, function in functions.items():
        checks = [function.keep_output] if function.keep else []
        before = wrap(function.before, function.args, streams) if function.draws or function.inplace else None
        jobs[name] = _Job(interrupts, wrap(function, function.args, streams), before, checks)
        jobs[name].trusted = False  # an error that the candidate raises must not disable the inspection
    options = {k: m[k] for k in ("bytes", "flops", "max_time", "precision", "dtype", "device")}
    # each candidate has a new process, and a ratio of two times needs no calibration of the event timer
    return _measure(
        jobs, interrupts, name="judge", host=m["host"], expect=m["expect"], calibrate=False, **options
    )


def _read_exactly(handle: int, n: int) -> bytes:
    parts = []
    while n:
        part = os.read(handle, min(n, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def _pickled(message: Dict[str, Any]) -> bytes:
    """Pickles a message. Tensors of 8-bit floats are sent as uint8, because PyTorch 2.11 can pickle such tensors
    but not unpickle them."""
    import io
    import pickle

    class Pickler(pickle.Pickler):
        def reducer_override(self, v: Any) -> Any:
            if not _is_array(v) or not str(v.dtype).startswith("torch.float8"):
                return NotImplemented
            return _viewed_as, (v.view(sys.modules["torch"].uint8), str(v.dtype)[6:])

    data = io.BytesIO()
    Pickler(data, protocol=4).dump(message)
    return data.getvalue()


def _viewed_as(tensor: Any, dtype: str) -> Any:
    import torch

    return tensor.view(getattr(torch, dtype))


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _serve(reader: int, writer: int) -> None:
    import pickle

    sys.dont_write_bytecode = True  # no .pyc files of the candidate are written
    server = _Server()
    # loads, dumps and pack keep the original functions, even if the candidate later replaces pickle.loads
    loads, dumps, pack = pickle.loads, json.dumps, struct.pack
    answers = {key: getattr(server, key) for key in vars(_Server) if not key.startswith("_")}
    while True:
        try:
            (size,) = struct.unpack("<Q", _read_exactly(reader, 8))
        except EOFError:
            os._exit(0)
        m = loads(_read_exactly(reader, size))
        try:
            reply = answers[m["do"]](m)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"[:300]}
        out = reply.pop("out", b"")
        head = dumps(reply).encode()
        body = m["token"].encode() + pack("<I", len(head)) + head + out
        _write_all(writer, pack("<Q", len(body)) + body)


# --- in the judge's process ---------------------------------------------------------------------------------


class _ProcessEnded(Exception):
    """Raised when the candidate's process has ended, or when the judge cannot use the reply of that process."""

    def __init__(self, word: str, why: str) -> None:
        Exception.__init__(self, why)
        self.word = word


_CODE = "import sys; sys.path.append({!r}); import kbench; kbench.{}"


def _command_of(call: str) -> List[str]:
    folder = os.path.dirname(os.path.abspath(__file__))
    kept = "pycache_prefix=" + os.path.join(_cache(), "pyc")
    return [sys.executable, "-I", "-X", kept, "-c", _CODE.format(folder, call)]


def _variables(folder: str) -> Dict[str, str]:
    kept = ("PATH", "LANG", "LC_", "LD_", "CUDA", "NVIDIA", "TRITON", "OMP_", "OPENBLAS", "MKL_", "PYTORCH_")
    env = {k: v for k, v in os.environ.items() if k.startswith(kept)}
    env.update(HOME=folder, TMPDIR=folder, TORCHINDUCTOR_COMPILE_THREADS="1")
    return env


def _run_fork_server(handle: int) -> None:
    """Imports slow modules once, then forks a process for each candidate. Ends when the judge's process closes the
    socket."""
    import array
    import socket

    place = socket.socket(fileno=handle)
    while True:
        data, hidden, _, _ = place.recvmsg(1 << 16, socket.CMSG_SPACE(8))
        if not data:
            shutil.rmtree(os.environ["HOME"], ignore_errors=True)
            os._exit(0)
        m = json.loads(data)
        if "modules" in m:
            for name in m["modules"]:
                __import__(name)
            place.sendall(b"ready")
            continue
        if "wait" in m:
            _, status = os.waitpid(m["wait"], 0)
            place.sendall(json.dumps(status).encode())
            continue
        ends = array.array("i")
        ends.frombytes(hidden[0][2][:8])
        pid = os.fork()
        if not pid:
            place.close()
            os.setsid()
            os.environ.clear()
            os.environ.update(m["env"])
            os.chdir(m["env"]["HOME"])
            tempfile.tempdir = None
            try:
                _serve(ends[0], ends[1])
            finally:
                os._exit(1)
        for end in ends:
            os.close(end)
        place.sendall(json.dumps(pid).encode())


class _ForkServer:

    kept: Dict[Tuple[str, ...], "_ForkServer"] = {}

    def __init__(self, modules: Tuple[str, ...]) -> None:
        import socket

        self.place, others = socket.socketpair()
        self.folder = tempfile.mkdtemp(prefix="kbench-judge-")
        with others:
            self.process = subprocess.Popen(
                _command_of(f"_run_fork_server({others.fileno()})"),
                pass_fds=(others.fileno(),),
                cwd=self.folder,
                env=_variables(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.modules = self.loading = modules
        self._send({"modules": modules}, ())

    @classmethod
    def of(cls, modules: Tuple[str, ...]) -> "_ForkServer":
        fork_server = cls.kept.get(modules)
        if fork_server is None or fork_server.process.poll() is not None:
            import atexit

            fork_server = cls.kept[modules] = cls(modules)
            atexit.register(fork_server.close)
        return fork_server

    def _send(self, message: Any, handles: Sequence[int]) -> None:
        import array
        import socket

        hidden = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))] if handles else []
        self.place.sendmsg([json.dumps(message).encode()], hidden)

    def ask(self, message: Any, handles: Sequence[int] = ()) -> bytes:
        loading, self.loading = self.loading, ()
        try:
            answer = self.place.recv(64) if loading else b"ready"  # waits until the modules are imported
            if answer:
                self._send(message, handles)
                answer = self.place.recv(64)
        except OSError:
            answer = b""
        if not answer:
            raise Error(
                f"judge: no process could be started that imports {', '.join(self.modules)}. Check that Python can "
                "import each module."
            )
        return answer

    def close(self) -> None:
        self.place.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class _ForkedProcess:
    """A process that the fork server has forked."""

    def __init__(self, fork_server: _ForkServer, env: Dict[str, str], handles: Sequence[int]) -> None:
        self.fork_server = fork_server
        self.pid = int(fork_server.ask({"env": env}, handles))
        self.code: Optional[int] = None

    def wait(self) -> int:
        if self.code is None:
            status = int(self.fork_server.ask({"wait": self.pid}))
            self.code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self.code


class _Remote:
    """A function in a new process, which has its own working folder, no standard input or output, and few environment
    variables. preload: modules that a fork server imports before it forks this process. If preload is empty, the
    process is started without a fork server."""

    def __init__(
        self,
        spec: Dict[str, str],
        modules: Sequence[str],
        timeout: float,
        preload: Sequence[str] = (),
        gpu_lock: Optional["_GpuLock"] = None,
        **load: Any,
    ) -> None:
        self.timeout, self.gpu_lock = timeout, gpu_lock
        self.folder = tempfile.mkdtemp(prefix="kbench-judge-")
        env = _variables(self.folder)
        theirs, self.to = os.pipe()
        self.come, others = os.pipe()
        os.set_blocking(self.to, False)  # a process that does not read must not block the judge for ever
        self.process: Any
        if preload:
            self.process = _ForkedProcess(_ForkServer.of(tuple(preload)), env, (theirs, others))
        else:
            self.process = subprocess.Popen(
                _command_of(f"_serve({theirs}, {others})"),
                pass_fds=(theirs, others),
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        os.close(theirs)
        os.close(others)
        try:
            reply = self.ask("load", spec=spec, modules=list(modules), **load)
            if "error" in reply:
                raise _ProcessEnded("CRASHED", f"the candidate cannot be imported: {reply['error']}")
        except BaseException:
            self.close()
            raise

    def _wait(self, handle: int, writes: bool, end: float) -> None:
        import select
        import time as clock

        left = max(0.0, end - clock.monotonic())
        if not any(select.select([] if writes else [handle], [handle] if writes else [], [], left)):
            raise _ProcessEnded("TIMEOUT", f"no reply within {self.timeout:g} s")

    def _send(self, data: bytes, end: float) -> None:
        view = memoryview(data)
        while view:
            self._wait(self.to, True, end)
            view = view[os.write(self.to, view) :]

    def _answered(self, seconds: float) -> bool:
        import select

        return bool(select.select([self.come], [], [], seconds)[0])

    def _size(self, end: float) -> int:
        """A candidate that takes longer than one second probably compiles or hangs; the judge then releases the GPU
        lock while it waits."""
        import time as clock

        if self.gpu_lock and not self._answered(max(0.0, min(1.0, end - clock.monotonic()))):
            with self.gpu_lock.released():
                self._wait(self.come, False, end)
        return int(struct.unpack("<Q", self._receive(8, end))[0])

    def _receive(self, n: int, end: float) -> bytes:
        parts = []
        while n:
            self._wait(self.come, False, end)
            part = os.read(self.come, min(n, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def ask(self, do: str, **message: Any) -> Dict[str, Any]:
        import secrets
        import time as clock

        token = secrets.token_hex(8)
        message.update(do=do, token=token)
        data = _pickled(message)
        try:
            end = clock.monotonic() + self.timeout
            self._send(struct.pack("<Q", len(data)) + data, end)
            size = self._size(end)
            body = self._receive(size, end) if 20 <= size < 1 << 34 else b""
        except (EOFError, BrokenPipeError):
            code = self.process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise _ProcessEnded("EXITED", f"the candidate's process ended during a call ({how})") from None
        try:
            if body[:16] != token.encode():
                raise ValueError
            (length,) = struct.unpack_from("<I", body, 16)
            reply = json.loads(body[20 : 20 + length])
        except (ValueError, struct.error):
            raise _ProcessEnded("FORGED_RESULT", "the process sent a reply that the judge had not asked for") from None
        reply["out"] = body[20 + length :]
        return reply

    def go(self, **how: Any) -> None:
        reply = self.ask("go", **how)
        if "error" in reply:
            raise _ProcessEnded("CRASHED", reply["error"])

    def busy(self) -> bool:
        folder = f"/proc/{self.process.pid}/task"
        for thread in os.listdir(folder):
            try:
                with open(f"{folder}/{thread}/stat") as f:
                    if f.read().rpartition(")")[2].split()[0] == "R":
                        return True
            except OSError:
                pass  # the thread has ended
        return False

    def children(self) -> int:
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
                return len(f.read().split())
        except OSError:
            return 0  # the operating system does not list child processes

    def files(self) -> List[str]:
        return sorted(f for f in os.listdir(self.folder) if not f.startswith(_COMPILERS_OWN))

    def close(self) -> None:
        os.close(self.to)
        os.close(self.come)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _spec_of(what: Any, fallback: Sequence[str] = ()) -> Dict[str, str]:
    """Returns where a new process finds a function: a dict with "path" or "module", and "name". what: "file.py:name",
    "file.py" or a function at the top level of a module. fallback: names of functions to look for in the file if
    `what` names no function."""
    if isinstance(what, str):
        path, colon, name = what.rpartition(":")
        path, name = (path, name) if colon and not os.path.exists(what) else (what, "")
        if not os.path.isfile(path):
            raise Error(f"judge: there is no file {path}")
        if not name:
            import ast

            with open(path) as f:
                try:
                    own = [n.name for n in ast.parse(f.read()).body if isinstance(n, ast.FunctionDef)]
                except SyntaxError as error:
                    raise Error(f"judge: {path} is not valid Python: {error}") from None
            wanted = [n for n in fallback if n in own] or [n for n in own if not n.startswith("_")][-1:]
            if not wanted:
                raise Error(f"judge: {path} has no function. Define one, and name it as in {path}:candidate.")
            name = wanted[0]
        return {"path": os.path.abspath(path), "name": name}
    name = getattr(what, "__qualname__", "")
    if not callable(what) or "<" in name:
        raise Error(
            "judge: a new process must be able to import the function. Pass a file ('file.py:name') or a function at "
            "the top level of a module, not a lambda or a nested function."
        )
    try:
        return {"path": os.path.abspath(inspect.getsourcefile(what) or ""), "name": name}
    except TypeError:
        return {"module": what.__module__, "name": name}


_NEXT_SIZE = {
    "as given": lambda d: d,
    "one more": lambda d: d + 1,
    "one less": lambda d: max(1, d - 1),
    "1.5 times as large": lambda d: d + d // 2,
    "a prime": lambda d: _prime(max(2, d // 2)),
    "one": lambda d: 1,
}
_AT_RANDOM = "at random"
_SHRINK = ("one less", "a prime", "one")
_KINDS = ("positive", "wide", "spike", "sorted", "constant", "zeros")


def _prime(n: int) -> int:
    while any(n % k == 0 for k in range(2, int(n**0.5) + 1)):
        n += 1
    return n


def _shape_of(v: Any) -> Optional[Tuple[int, ...]]:
    """Returns the shape of an array or of a nested list of numbers. Returns None for any other value, and for an array
    without dimensions."""
    if _is_array(v):
        return tuple(v.shape) or None
    if isinstance(v, list) and v:
        if all(isinstance(e, (int, float)) and not isinstance(e, bool) for e in v):
            return (len(v),)
        inner = {_shape_of(e) for e in v}
        if len(inner) == 1 and None not in inner and all(isinstance(e, list) for e in v):
            return (len(v),) + inner.pop()  # type: ignore[operator]
    return None


class _Inputs:
    """Makes random inputs with the structure of the examples. Sizes that are equal in the examples stay equal when
    sizes change.
    given: a tuple of examples, or a function that takes a random.Random and returns such a tuple."""

    def __init__(self, given: Any, seed: int) -> None:
        import random

        self.random, self.seed = random, seed
        self.make_own = given if callable(given) else None
        try:
            self.examples = tuple(given(random.Random(seed))) if callable(given) else tuple(given)
        except Exception as error:
            raise Error(
                "judge: inputs must be a tuple of examples, or a function of a random.Random that returns a tuple. "
                f"Making the inputs raised {type(error).__name__}: {error}"
            ) from error
        self.places = self.places_of(self.examples)
        self.scalars = not self.places
        self.edits = random.Random(seed ^ 0xED17)
        self.count = 0
        self.drawn: Any = None

    @property
    def tensors(self) -> List[Any]:
        return [v for v in self.examples if _module_of(v) == "torch" and hasattr(v, "device")]

    @property
    def device(self) -> Optional[int]:
        of = [v.device.index or 0 for v in self.tensors if v.device.type == "cuda"]
        return of[0] if of else None

    @property
    def points(self) -> bool:
        """Integer inputs may be indices into other inputs, which must then not shrink."""
        return any(low is not None for _, shape, low, _ in self.places if len(self.examples) > 1)

    @property
    def modules(self) -> List[str]:
        """The candidate's process imports these modules before it takes the first snapshot of functions."""
        return sorted({_module_of(v) for v in _arrays_of(self.examples)} & {"numpy", "torch", "cupy"})

    def _flat(self, kind: str, n: int, example: List[float], whole: bool, rng: Any) -> List[Any]:
        if whole:
            low, high = int(min(example)), int(max(example))
            flat = [rng.randint(low, high) for _ in range(n)]
        else:
            flat = [rng.gauss(0, 1) for _ in range(n)]
            if kind == "positive":
                flat = [math.exp(v) for v in flat]
            elif kind == "wide":
                flat = [v * 10 ** rng.uniform(-3, 3) for v in flat]
            elif kind in ("spike", "nan", "inf") and n:
                flat[rng.randrange(n)] = {"spike": 1e3, "nan": math.nan, "inf": math.inf}[kind]
            elif kind == "zeros":
                flat = [0.0] * n
        if kind == "sorted":
            flat.sort()
        elif kind == "constant":
            flat = flat[:1] * n
        return flat

    def _like(self, kind: str, v: Any, sizes: Callable[[int], int], rng: Any) -> Any:
        shape = _shape_of(v)
        if shape is None and type(v) in (list, tuple) and _arrays_of(v):
            return type(v)(self._like(kind, e, sizes, rng) for e in v)
        if shape is None:
            return rng.gauss(0, 1) if self.scalars and isinstance(v, float) else _copy(v)
        return self._made(kind, v, tuple(sizes(d) if d > 3 else d for d in shape), rng)

    def _made(self, kind: str, v: Any, fresh: Tuple[int, ...], rng: Any) -> Any:
        if _module_of(v) == "torch":
            return self._tensor(kind, v, fresh, rng)
        n = math.prod(fresh)
        if isinstance(v, list):
            example = v
            while isinstance(example[0], list):
                example = [e for row in example for e in row]
            flat = self._flat(kind, n, example, all(isinstance(e, int) for e in example), rng)
            for d in reversed(fresh[1:]):
                flat = [flat[i : i + d] for i in range(0, len(flat), d)]
            return flat
        whole = not any(word in str(v.dtype) for word in ("float", "complex"))
        example = [float(v.min()), float(v.max())] if whole else [0.0]
        flat = self._flat(kind, n, example, True, rng) if whole else self._normal_array(kind, n, rng)
        return sys.modules[_module_of(v)].array(flat).astype(v.dtype).reshape(fresh)

    def _tensor(self, kind: str, v: Any, shape: Tuple[int, ...], rng: Any) -> Any:
        import torch

        own = torch.Generator(device=v.device)
        own.manual_seed(rng.getrandbits(62))
        where = {"generator": own, "device": v.device}
        n = math.prod(shape)
        if not v.dtype.is_floating_point and not v.dtype.is_complex:
            low, high = (int(v.min()), int(v.max())) if v.numel() else (0, 0)
            flat = torch.randint(low, high + 1, (n,), **where)
        else:
            flat = self._floats(torch, kind, n, v.dtype, where, rng)
        if kind == "sorted":
            flat = flat.sort().values
        elif kind == "constant" and n:
            flat = flat[:1].repeat(n)
        made = flat.to(v.dtype).reshape(shape)
        return made.requires_grad_() if v.requires_grad else made

    @staticmethod
    def _floats(torch: Any, kind: str, n: int, dtype: Any, where: Dict[str, Any], rng: Any) -> Any:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        flat = torch.randn(n, dtype=wide, **where)
        if dtype.is_complex:
            return torch.complex(flat, torch.randn(n, dtype=wide, **where))
        if kind == "positive":
            return flat.exp()
        if kind == "wide":
            return flat * 10 ** (6 * torch.rand(n, dtype=wide, **where) - 3)
        if kind in ("spike", "nan", "inf") and n:
            flat[rng.randrange(n)] = {"spike": 1e3, "nan": math.nan, "inf": math.inf}[kind]
        elif kind == "huge":
            flat = flat.clamp(-6, 6) * (1e4 if dtype == torch.float16 else 1e30)
        elif kind == "zeros":
            flat.zero_()
        return flat

    def _normal_array(self, kind: str, n: int, rng: Any) -> Any:
        """Returns n random numbers with the distribution of _flat; draws them with numpy if numpy is loaded."""
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return self._flat(kind, n, [0.0], False, rng)
        own = numpy.random.default_rng(rng.getrandbits(63))
        flat = own.standard_normal(n)
        if kind == "positive":
            flat = numpy.exp(flat)
        elif kind == "wide":
            flat *= 10 ** own.uniform(-3, 3, n)
        elif kind in ("spike", "nan", "inf") and n:
            flat[own.integers(n)] = {"spike": 1e3, "nan": math.nan, "inf": math.inf}[kind]
        elif kind in ("zeros", "constant"):
            flat[:] = 0 if kind == "zeros" or not n else flat[0]
        elif kind == "sorted":
            flat.sort()
        return flat

    def fresh(self, kind: str = "normal", sizes: str = "as given") -> Tuple[Any, ...]:
        self.count += 1
        rng = self.random.Random(self.seed * 1000003 + self.count)
        if self.make_own:
            return tuple(self.make_own(rng))
        drawn: Dict[int, int] = {}

        def at_random(d: int) -> int:
            low, usual = d if self.points else max(1, d // 2), {f(d) for f in _NEXT_SIZE.values()}
            some = [n for n in (rng.randint(low, d + d // 2) for _ in range(20)) if n not in usual]
            return drawn.setdefault(d, some[0] if some else d)

        change = at_random if sizes == _AT_RANDOM else _NEXT_SIZE[sizes]
        return tuple(self._like(kind, v, change, rng) for v in self.examples)

    def edit(
        self, value: Optional[float] = None, places: Optional[List[Any]] = None
    ) -> Optional[Tuple[int, Tuple[int, ...], Any]]:
        places = self.places if places is None else places
        if not places:
            return None
        i, shape, low, high = places[int(self.edits.random() * len(places))]
        at = tuple(int(self.edits.random() * d) for d in shape)
        return (
            i,
            at,
            self.edits.randint(low, high or 0) if low is not None else value or self.edits.gauss(0, 1),
        )

    @property
    def pool(self) -> Dict[str, Any]:
        """Random numbers from which the judge and the candidate's process make the same new contents of the inputs.
        "flat" holds, for each argument, more random numbers than the argument has elements. A draw (new contents
        for the inputs of one call) is the weighted sum of two sections of "flat"; the positions and the weights
        are random. For a GPU task that makes its own inputs, "flat" is empty, and "sets" holds a few sets of the
        task's inputs; a draw then picks one of these sets at random, and changes one element."""
        if self.drawn is None:
            sets: List[Any] = []
            flat: Dict[int, Any] = {}
            if self.make_own:
                sets = self._sets() if self.device is not None else []
            else:
                rng = self.random.Random(self.seed ^ 0x3E11)
                flat = {i: self._stock(self.examples[i], shape, rng) for i, shape, _, _ in self.places}
            self.drawn = {"flat": flat, "sets": sets, "shapes": {i: shape for i, shape, _, _ in self.places}}
        return self.drawn

    def _stock(self, v: Any, shape: Tuple[int, ...], rng: Any) -> Any:
        n = math.prod(shape)
        made = self._made("normal", v, (n + self._spare(n),), rng)
        return made.detach() if _module_of(made) == "torch" else made

    @staticmethod
    def _spare(n: int) -> int:
        return max(4096, min(n, 1 << 20))

    def _sets(self) -> List[Any]:
        """Returns up to 16 sets of inputs of equal sizes. If there are more than two sets of inputs, they take at
        most 256 MiB together."""
        sets, size = [self.fresh()], sum(t.nbytes for t in self.tensors)
        most = max(2, min(16, (1 << 28) // max(1, size)))
        for _ in range(4 * most):
            if len(sets) < most:
                other = self.fresh()
                sets += [other] if [*map(_shape_of, other)] == [*map(_shape_of, sets[0])] else []
        return sets

    def draws(self, n: int) -> List[Any]:
        """A draw describes new random contents for all inputs of a call. Returns an empty list if there are no
        arrays, or if a task on the host makes its own inputs."""
        if self.pool["sets"]:
            places = self.places_of(self.pool["sets"][0])
            which = lambda: self.edits.randrange(len(self.pool["sets"]))
            return [(which(), [], self.edit(None, places)) for _ in range(n)]
        if not self.pool["flat"]:
            return []
        return [(None, [self._mix_of(*place) for place in self.places], None) for _ in range(n)]

    def _mix_of(self, i: int, shape: Tuple[int, ...], low: Any, high: Any) -> Tuple[Any, ...]:
        """Returns random contents for one argument, described by the argument's index, the start positions of two
        sections of random numbers, and the weights of the two sections. The squares of the weights add up to 1, so
        that the weighted sum of two standard normal numbers is standard normal. For an integer argument, both
        weights are None, and the contents are a copy of the first section."""
        spare, wide = self._spare(math.prod(shape)) + 1, low is None and not _is_narrow(self.examples[i])
        at = int(self.edits.random() * spare), int(self.edits.random() * spare)
        if not wide:
            return (i, *at, None, None)
        angle = (1 + 2 * self.edits.random()) * math.pi / 8 + self.edits.randrange(4) * math.pi / 2
        return (i, *at, math.cos(angle), math.sin(angle))

    def places_of(self, args: Sequence[Any]) -> List[Any]:
        """A task that makes its own inputs may change their sizes in each call, so the caller passes the current
        arguments."""
        return [self._place(i, v) for i, v in enumerate(args) if math.prod(_shape_of(v) or (0,))]

    def _place(self, i: int, v: Any) -> Tuple[int, Tuple[int, ...], Optional[int], Optional[int]]:
        """Integer arguments also get their smallest and largest value."""
        if _module_of(v) == "torch":
            whole = not v.dtype.is_floating_point and not v.dtype.is_complex and v.numel()
            return i, _shape_of(v) or (), int(v.min()) if whole else None, int(v.max()) if whole else None
        flat = _leaves(v)
        whole = isinstance(flat[0], int)
        return i, _shape_of(v) or (), min(flat) if whole else None, max(flat) if whole else None


def _apply(args: Tuple[Any, ...], edit: Tuple[int, Tuple[int, ...], Any]) -> None:
    i, at, value = edit
    v = args[i]
    if not isinstance(v, list):
        (v.detach() if _module_of(v) == "torch" else v)[at] = value
        return
    for k in at[:-1]:
        v = v[k]
    v[at[-1]] = value


def _is_narrow(v: Any) -> bool:
    """Elements of bool and of 8-bit floats cannot be added or multiplied."""
    return _is_array(v) and (str(v.dtype).endswith("bool") or "float8" in str(v.dtype))


def _fill(args: Tuple[Any, ...], pool: Dict[str, Any], draw: Tuple[Any, ...]) -> None:
    """Overwrites existing arguments with the random contents that `draw`, a result of _Inputs.draws, describes. In
    the judge's process and in the candidate's process, the arguments get the same bits."""
    which, mixes, edit = draw
    if which is not None:
        _overwrite(args, _copy(pool["sets"][which]))
    for i, at, other, share, rest in mixes:
        flat, shape = pool["flat"][i], pool["shapes"][i]
        n = math.prod(shape)
        _mix(args[i], shape, flat[at : at + n], flat[other : other + n], share, rest)
    if edit:
        _apply(args, edit)


def _mix(into: Any, shape: Tuple[int, ...], a: Any, b: Any, share: Optional[float], rest: Any) -> None:
    if isinstance(into, list):
        mixed = a if share is None else [v * share + w * rest for v, w in zip(a, b)]
        for d in reversed(shape[1:]):
            mixed = [mixed[i : i + d] for i in range(0, len(mixed), d)]
        into[:] = mixed
    elif _module_of(into) != "torch":
        into[...] = (a if share is None else a * share + b * rest).reshape(shape)
    elif share is None or not into.is_contiguous():
        into.data.copy_((a if share is None else a * share + b * rest).view(shape))
    else:
        flat = into.data.view(-1)
        sys.modules["torch"].mul(a, share, out=flat)
        flat.add_(b, alpha=rest)


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _leaves(v)]
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in _leaves(v)]
    if _is_array(value):
        return list(value.reshape(-1).tolist())
    return [value]


def _largest(value: Any) -> float:
    if isinstance(value, (list, tuple)):
        return max(map(_largest, value), default=0.0)
    if _is_array(value):
        size = abs(value.reshape(-1))
        size = size[size < math.inf]
        return float(size.max()) if len(size) else 0.0
    return abs(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


class _Reference:
    """The expected values of one tensor: the reference's output in double precision, and the error of the
    reference's output in the tensor's own element type. rtol, atol: the task's tolerances. By default, rtol
    follows the element type, and the tolerance near zero follows from the magnitude of the values and the
    reference's own error."""

    def __init__(self, own: Any, value: Any, rtol: Optional[float], atol: Optional[float]) -> None:
        import torch

        self.rtol, self.atol = _TOLERANCES[_dtype_of(own)] if rtol is None else rtol, atol
        self.overflows = False  # the inputs have huge values, so every infinity or NaN in the output is accepted
        # where the expected value is not finite, NaN and infinity are both correct, because the inputs hold NaN or
        # infinity
        self.infinite = False
        double = own.to(torch.complex128 if own.dtype.is_complex else torch.float64)
        self.value = value.to(double.dtype)
        self.most = torch.finfo(own.dtype).max
        both = torch.isfinite(double) & torch.isfinite(self.value)
        # if the reference's output is finite in only one of the two precisions, the expected value is unknown
        self.open = torch.isfinite(double) != torch.isfinite(self.value)
        self.rough = 0.0  # largest change of the output when the inputs change by a fraction of rtol
        kept = self.value[both].abs()
        self.scale = float(kept.square().mean().sqrt()) if kept.numel() else 0.0
        off = (double - self.value)[both].abs()
        self.worst = float(off.max()) if off.numel() else 0.0
        self.ratio = float(off.square().mean().sqrt()) / self.scale if self.scale else 0.0

    def shake(self, other: Any, rough: Any = None) -> None:
        """Widens the accepted error. other: the output for inputs whose last bit was changed; no algorithm can be
        expected to have a smaller error than this change of the output. rough: the output for inputs that were changed
        by a fraction of rtol."""
        self.worst = max(self.worst, self._furthest(other))
        if rough is not None:
            self.rough = self._furthest(rough)

    def _furthest(self, other: Any) -> float:
        off = (other.to(self.value.dtype) - self.value).abs()
        off = off[off < math.inf]
        return float(off.max()) if off.numel() else 0.0

    def apart(self, got: Any) -> Any:
        import torch

        got = got.to(self.value.dtype)
        off = (got - self.value).abs()
        near_zero = max(self.rtol * self.scale, self.rough) + 8 * self.worst if self.atol is None else self.atol
        allowed = near_zero + self.rtol * self.value.abs()
        apart = torch.where(off == 0, torch.zeros_like(off), off / allowed)
        same = (torch.isnan(got) & torch.isnan(self.value)) | (got == self.value) | self.open
        # an infinite output is correct if the tolerance reaches the largest finite number
        if not got.dtype.is_complex:
            edge = torch.where(self.value.abs() + allowed >= self.most, self.value.sign() * math.inf, self.value)
            same |= got == edge
        if self.overflows or self.infinite:
            same |= ~torch.isfinite(got) & (self.overflows | ~torch.isfinite(self.value))
        apart = torch.where(torch.isfinite(off) & torch.isfinite(apart), apart, torch.full_like(off, math.inf))
        return torch.where(same, torch.zeros_like(off), apart)

    def compare(self, got: Any, own: Any) -> float:
        if got.device != own.device:
            raise _Mismatch(f"it is on {got.device}, expected {own.device}")
        strides = getattr(got, "_strides", None)
        if strides and own.is_contiguous():
            raise _Mismatch(f"its strides are {tuple(strides)}, expected {own.stride()}")
        apart = self.apart(got)
        return float(apart.max()) if apart.numel() else 0.0

    def error(self, got: Any) -> float:
        import torch

        got = got.to(self.value.dtype)
        known = torch.isfinite(self.value) & ~self.open
        off = (got - self.value)[known].abs()
        if not off.numel() or not self.scale:
            return 0.0
        error = float(off.square().mean().sqrt()) / self.scale
        return error if math.isfinite(error) else math.inf


def _with_reference(own: Any, double: Any, rtol: Optional[float], atol: Optional[float]) -> Any:
    """Returns `own`, the output that the reference computes without conversion to double. Each floating-point tensor
    in `own` gets an attribute `_reference` of type _Reference."""
    if isinstance(own, (list, tuple)):
        if type(own) is not type(double) or len(own) != len(double):
            return None
        pairs = [_with_reference(o, d, rtol, atol) for o, d in zip(own, double)]
        return None if any(p is None for p in pairs) else _as(own, pairs)
    if _module_of(own) != "torch" or not hasattr(own, "dtype"):
        return own
    if own.dtype.is_floating_point or own.dtype.is_complex:
        if _module_of(double) != "torch" or own.shape != double.shape:
            return None
        own = own.detach()
        own._reference = _Reference(own, double.detach(), rtol, atol)
    return own


def _as(kind: Any, values: Iterable[Any]) -> Any:
    return list(values) if isinstance(kind, list) else tuple(values)


def _in_double(value: Any, shaken: Optional[float] = None) -> Any:
    """Converts floating-point tensors to double. shaken: None leaves the values unchanged. If `shaken` is a
    number, each value changes by a random fraction of at most shaken / 2. If `shaken` is below the machine epsilon
    of the element type, this epsilon is used instead."""
    if isinstance(value, (list, tuple)):
        return _as(value, (_in_double(v, shaken) for v in value))
    if _module_of(value) != "torch" or not hasattr(value, "is_floating_point"):
        return value
    if not value.is_floating_point():
        return value
    wide = value.detach().double()
    if shaken is not None:
        import torch

        share = max(shaken, torch.finfo(value.dtype).eps)
        wide = wide * (1 + share * (torch.rand_like(wide) - 0.5))
    return wide


def _arrays_of(value: Any) -> List[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in _arrays_of(v)]
    return [value] if _is_array(value) else []


def _tensors_of(value: Any) -> List[Any]:
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors_of(v)]
    return [value] if _module_of(value) == "torch" and hasattr(value, "dtype") else []


_CLASSES = ((53, "f64"), (24, "f32"), (11, "f16 or tf32"), (8, "bf16"))


def _bits_found(got: Any, want: Any) -> float:
    known = [(g, w) for g, w in zip(_tensors_of(got), _tensors_of(want)) if getattr(w, "_reference", None)]
    if known:
        error = max(w._reference.error(g) for g, w in known)
        return math.inf if error == 0 else -math.inf if error == math.inf else math.log2(0.3 / error) + 1
    if _is_array(want) and len(want.shape) and math.prod(want.shape) > 8192:  # a sample is enough
        step = math.prod(want.shape) // 4096
        got, want = got.reshape(-1)[::step], want.reshape(-1)[::step]
    pairs = [
        (g, w)
        for g, w in zip(_leaves(got), _leaves(want))
        if isinstance(w, float) and isinstance(g, (int, float)) and math.isfinite(w) and math.isfinite(g)
    ]
    size = math.sqrt(sum(w * w for _, w in pairs))
    error = math.sqrt(sum((g - w) ** 2 for g, w in pairs))
    return math.inf if error == 0 or not pairs else math.log2(0.3 * size / error) + 1 if size else 0.0


def _one_sided(got: Any, want: Any) -> bool:
    """Rounding errors have both signs; errors of mostly one sign mean that a part of the work is missing."""
    known = [(g, w) for g, w in zip(_tensors_of(got), _tensors_of(want)) if getattr(w, "_reference", None)]
    if known:
        got = [g.reshape(-1)[:4096].double() for g, _ in known]
        want = [w._reference.value.reshape(-1)[:4096] for _, w in known]
    errors = [g - w for g, w in zip(_leaves(got), _leaves(want)) if isinstance(w, float) and g != w]
    square = math.sqrt(sum(e * e for e in errors) * len(errors))
    return len(errors) > 4 and abs(sum(errors)) > 0.8 * square


def _zeros_like(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return _as(value, map(_zeros_like, value))
    if isinstance(value, dict):
        return {k: _zeros_like(v) for k, v in value.items()}
    return value * 0 if _is_array(value) else type(value)() if value is not None else None


def _timed(remote: _Remote, batch: Sequence[Any] = (), which: Optional[int] = None) -> float:
    """Returns the seconds that the process takes for a batch of calls, measured with the judge's clock. The calls
    use the inputs in `batch`, or, if `which` is given, the inputs that the request "keep" stored under that
    number."""
    import time as clock

    remote.ask("prepare", batch=batch, which=which)
    begin = clock.perf_counter()
    remote.go()
    return clock.perf_counter() - begin


class _TimedSide:
    """The candidate or the reference, timed on the host. Before each sample, the inputs of all calls in the batch get
    new contents. After each sample of the candidate (suspect=True), one output is checked."""

    def __init__(self, judge: "_Judge", remote: _Remote, batch: List[Any], suspect: bool) -> None:
        self.judge, self.remote, self.suspect = judge, remote, suspect
        self.batch = [_copy(args) for args in batch]
        self.draws: List[Any] = []
        self.wrong: List[str] = []
        self.ran = False
        remote.ask("prepare", batch=batch, which=None)

    def go(self, stream: int) -> None:
        self.remote.go()

    def prepare(self, stream: int) -> None:
        if self.ran and self.suspect:
            self.check_output()
        self.ran = True
        inputs = self.judge.inputs
        self.draws = [] if self.judge.inplace else inputs.draws(len(self.batch))
        if self.draws:
            self.remote.ask("touch", draws=self.draws)
            return
        self.batch = [inputs.fresh() for _ in self.batch]
        self.remote.ask("prepare", batch=self.batch, which=None)

    def check_output(self) -> None:
        i = self.judge.inputs.edits.randrange(len(self.batch))
        args = _copy(self.batch[i])
        if self.draws:
            _fill(args, self.judge.inputs.pool, self.draws[i])
        want = self.judge.expected(args)
        got = _decode(self.remote.ask("output", which=i, inplace=self.judge.inplace)["out"])
        worst, mismatch = self.judge.error(got, want, args)
        self.judge.checks += 1
        if isinstance(got, _Other) or worst > 1:
            self.wrong.append(mismatch or "an output of a timed call is wrong")


class _GpuLock:
    """A lock shared by all judges on a machine that use the same GPU. While a judge measures times, it holds the
    exclusive lock. While a judge does not measure, it holds the shared lock, which it releases between two calls
    of the candidate. device: number of the GPU; with None, all methods do nothing."""

    def __init__(self, device: Optional[int]) -> None:
        self.path = None
        self.held: Any = None  # the two open lock files while this judge holds the shared lock; otherwise None
        self.waited = 0.0  # seconds that the judge has waited for the GPU lock
        if device is not None:
            name = f"kbench-judge-{os.getuid()}-gpu{device}"
            self.path = os.path.join(tempfile.gettempdir(), name)

    def _enter(self, places: Any, alone: bool) -> None:
        import fcntl
        import time as clock

        began, (door, room) = clock.perf_counter(), places
        # all judges queue at the lock file "door", so that shared locks cannot starve an exclusive lock
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        self.waited += clock.perf_counter() - began

    @contextmanager
    def _lock(self, alone: bool) -> Iterator[None]:
        if not self.path:
            yield
            return
        own = lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        with open(self.path + ".door", "a", opener=own) as door, open(self.path, "a", opener=own) as room:
            self._enter((door, room), alone)
            self.held = None if alone else (door, room)
            try:
                yield
            finally:
                self.held = None

    def exclusive(self) -> Any:
        return self._lock(True)

    def shared(self) -> Any:
        return self._lock(False)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Releases the shared lock inside the `with` block, so that another judge can measure times."""
        import fcntl

        held, self.held = self.held, None
        if held:
            fcntl.flock(held[1], fcntl.LOCK_UN)
        try:
            yield
        finally:
            if held:
                self._enter(held, False)
            self.held = held

    def yield_gpu(self, seconds: float = 0) -> None:
        import time as clock

        with self.released():
            if seconds:
                clock.sleep(seconds)


class Verdict(Dict[str, Any]):
    """The result of kbench.judge: a dict that json can write, with its keys as attributes. Notebooks show a table.

    verdict: REJECTED, WRONG, INVALID_TASK or SUSPECT (correct, but the time is not credible); if nothing was found:
        FASTER, SLOWER, EQUIVALENT or UNRESOLVED.
    flags: list of dicts, one per flag, with the keys "word" (name of the flag), "level" and "evidence". words:
        list of the flags' names.
    Times are in ms per call."""

    def __getattr__(self, key: str) -> Any:
        if key in self:
            return self[key]
        raise AttributeError(key)

    @property
    def words(self) -> List[str]:
        return [f["word"] for f in self["flags"]]

    def to_dict(self) -> Dict[str, Any]:
        """Returns a deep copy of all keys and values as a plain dict."""
        return copy.deepcopy(dict(self))

    def __repr__(self) -> str:
        speed = (
            f" x{self['speedup']:.3g} ({self['speedup_low']:.3g} to {self['speedup_high']:.3g})"
            if self["speedup"] is not None and self["speedup_low"] is not None
            else ""
        )
        return f"{self['verdict']}{speed}" + "".join(
            "\n" + _harmless(f"  {f['word']}: {f['evidence']}") for f in self["flags"]
        )

    def _repr_html_(self) -> str:
        rows = [("verdict", repr(self).split("\n", 1)[0])]
        if self["time_ms"] is not None:
            rows += [("time", _show_time(self["time_ms"])), ("reference", _show_time(self["reference_ms"]))]
        rows += [(f["word"], f["evidence"]) for f in self["flags"]]
        body = "".join(f"<tr><th>{_markup(k)}</th><td>{_markup(v)}</td></tr>" for k, v in rows)
        return f"<table><tbody>{body}</tbody></table>"


_claimed: Dict[Any, Any] = {}


class _Judge:
    def __init__(
        self,
        candidate: Dict[str, str],
        reference: Callable[..., Any],
        reference_spec: Dict[str, str],
        inputs: _Inputs,
        rtol: Optional[float],
        atol: Optional[float],
        allow: Iterable[str],
        timeout: float,
        max_time: float,
        more: Dict[str, Any],
    ) -> None:
        self.spec, self.reference_spec, self.reference, self.inputs = candidate, reference_spec, reference, inputs
        self.rtol, self.atol, self.allow, self.timeout, self.max_time = (
            rtol,
            atol,
            set(allow),
            timeout,
            max_time,
        )
        self.flags: List[Dict[str, str]] = []
        self.probes: Dict[str, str] = {}
        self.checks, self.inplace, self.views = 0, False, False
        self.found: List[float] = []  # estimated mantissa bits of each output for normal inputs
        self.former: List[Any] = []  # expected outputs of earlier calls
        self.decoy: Any = None  # a wrong output that is planted in the candidate's process
        self.speed: Dict[str, Any] = {}
        self.remote: Any = None
        self.gone = False  # the candidate's process has ended
        self.device = inputs.device
        self.gpu_lock = _GpuLock(self.device)
        self.more = more
        self.errors: List[Tuple[float, float]] = []  # pairs of relative errors (candidate, reference) of tensors
        self.answers: List[bytes] = []  # SHA-256 digests of the candidate's wrong outputs
        self.right: List[bytes] = []  # SHA-256 digests of the candidate's correct outputs
        self.public = False  # whether the inputs are the public example
        self.odd = False  # whether the random inputs are of a kind other than "normal"
        self.seconds: Dict[str, float] = {}  # key: name of a step; value: seconds that the step took
        self.claimed: Dict[str, Any] = {}
        self.request: Dict[str, Any] = {}
        self.response: Dict[str, Any] = {}

    # --- flags ---

    def flag(self, word: str, evidence: str) -> None:
        name = word.partition(":")[0]
        if name not in self.allow and all(f["word"] != word for f in self.flags):
            self.flags.append({"word": word, "level": _FLAGS[name][0], "evidence": evidence})

    @property
    def condemned_task(self) -> bool:
        return any(f["level"] == "INVALID_TASK" for f in self.flags)

    @property
    def condemned(self) -> bool:
        return any(f["level"] in ("REJECTED", "WRONG", "INVALID_TASK") for f in self.flags)

    # --- one call ---

    def expected(self, args: Tuple[Any, ...]) -> Any:
        import warnings

        own = _copy(args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # suppresses warnings about NaN and infinity in the inputs
            want = self.reference(*own)
        want = own if self.inplace else want
        return self._true(args, want) if self.inputs.tensors else want

    def _true(self, args: Tuple[Any, ...], want: Any) -> Any:
        """Falls back to the precision of the inputs if the reference does not accept double."""
        wide = _in_double(_copy(args))
        try:
            double = self.reference(*wide)
            known = _with_reference(want, wide if self.inplace else double, self.rtol, self.atol)
            if known is not None and self.odd:
                near = self._shaken(args, 0.0)
                rough = [None] * len(near) if self.rtol is None else self._shaken(args, self.rtol / 4)
                for t, other, more in zip(_tensors_of(known), near, rough):
                    if getattr(t, "_reference", None):
                        t._reference.shake(other, more)
        except Exception:
            known = None
        return _with_reference(want, want, self.rtol, self.atol) if known is None else known

    def _shaken(self, args: Tuple[Any, ...], share: float) -> List[Any]:
        near = _in_double(_copy(args), shaken=share)
        double = self.reference(*near)
        return _tensors_of(near if self.inplace else double)

    def error(self, got: Any, want: Any, args: Any) -> Tuple[float, str]:
        """Returns the error divided by the tolerance, and a message if types or shapes differ. The absolute
        tolerance grows with the magnitude of the inputs, except for tensors."""
        base = _TOLERANCES[_dtype_of(want)] if self.rtol is None else self.rtol
        scale = 1.0 if self.inputs.tensors else max(1.0, _largest(args))
        try:
            return _compare(got, want, base, (base if self.atol is None else self.atol) * scale), ""
        except _Mismatch as mismatch:
            return math.inf, str(mismatch)

    def ask(self, args: Tuple[Any, ...], want: Any, **options: Any) -> Dict[str, Any]:
        self.gpu_lock.yield_gpu()
        of = want if isinstance(want, (list, tuple)) else [want]
        sizes = [v.nbytes for v in of if hasattr(v, "nbytes")]
        reply = self.remote.ask(
            "call", args=args, sizes=sizes, decoy=self.decoy, inplace=self.inplace, **options
        )
        if "error" not in reply:
            try:
                reply["value"] = _decode(reply["out"])
            except Exception:
                raise _ProcessEnded("FORGED_RESULT", "the output that the process sent cannot be decoded") from None
        return reply

    def _named(
        self, reply: Dict[str, Any], want: Any, args: Tuple[Any, ...], mismatch: str, word: str
    ) -> Tuple[str, str]:
        got = reply["value"]
        if got is None and want is not None:
            return "NO_WORK", "the function returned None"
        if isinstance(got, _Other):
            return "LAZY", f"the output is a {got.name}"
        if any(isinstance(leaf, _Other) for leaf in _leaves(got)):
            return "LAZY", "the output contains a " + next(
                leaf.name for leaf in _leaves(got) if isinstance(leaf, _Other)
            )
        if any(self.error(got, v, ())[0] == 0 for v in args if _shape_of(v)) and reply.get("shares"):
            return "INPUT_RETURNED", "the output is an input"
        if self.error(got, self.decoy, ())[0] <= 1:
            return "SNOOPED", "the output is a wrong result that the judge had planted in the call frames"
        if not self.public and self._same(got, self.former[0]) and self.checks <= 2:
            return "PRECOMPUTED", "the output is the result for the public example, which was not sent yet"
        if any(self._same(got, f) for f in self.former[1 if self.public else 0 :]):
            return "MEMOIZED", "the output is the expected output of an earlier call"
        if mismatch:
            return "WRONG_LAYOUT", mismatch
        if hashlib.sha256(reply["out"]).digest() in self.right and _shape_of(got):
            return "MEMOIZED", "the output is the correct output for other inputs"
        if hashlib.sha256(reply["out"]).digest() in self.answers and _shape_of(got):
            return "CONSTANT_OUTPUT", "the function returned the same output for different inputs"
        if self.inputs.tensors and (name := self._memory_in(got, want)):
            return name
        found = _bits_found(got, want)
        if word in ("WRONG", "SEED_BOUND", "SHAPE_BOUND") and found >= 5 and not _one_sided(got, want):
            return f"LOW_PRECISION:{self._class(found)}", f"the error corresponds to {found:.0f} mantissa bits"
        if self.inputs.tensors:
            return word, self._how_many(got, want)
        g, w = _leaves(got), _leaves(want)
        wrong = [i for i in range(len(w)) if self.error(g[i], w[i], args)[0] > 1]
        if len(w) > len(wrong) > 1:
            odd = {repr(g[i]) for i in wrong}
            if len(odd) == 1:
                return "PARTIAL_WRITE", f"{len(wrong)} of {len(w)} elements are {odd.pop()}"
        return word, f"{len(wrong)} of {len(w)} values are wrong"

    def _same(self, got: Any, former: Any) -> bool:
        """Returns whether the output equals `former`, the expected output for an earlier call or for other inputs.
        For tensors, the relative error decides, because the tolerance of outputs with huge values accepts almost
        every output."""
        known = [w for w in _tensors_of(former) if getattr(w, "_reference", None)]
        mine = _tensors_of(got)
        if not known or len(mine) != len(_tensors_of(former)):
            return self.error(got, former, ())[0] <= 1
        pairs = [(g, w) for g, w in zip(mine, _tensors_of(former)) if getattr(w, "_reference", None)]
        if any(g.shape != w.shape or g.device != w.device for g, w in pairs):
            return False
        return all(w._reference.error(g) < 0.02 if w._reference.scale else not bool(g.any()) for g, w in pairs)

    def _late(self, reply: Dict[str, Any], want: Any, args: Any) -> Tuple[str, str]:
        """Returns a flag and evidence if an output that was wrong after the call becomes correct within 0.1 s."""
        values = _leaves(reply["value"]) if not self.inputs.tensors else _tensors_of(reply["value"])
        if self.inplace or not values or any(isinstance(v, _Other) for v in values):
            return "", ""
        late = _decode(self.remote.ask("again", which=0)["out"])
        if self.error(late, want, args)[0] <= 1:
            if self.device is None:
                return "LATE_WRITE", "the output was wrong when the function returned, but correct a moment later"
            return "SIDE_STREAM", "the output was wrong on the caller's stream, correct once the GPU was idle"
        self.gpu_lock.yield_gpu(0.1)
        late = _decode(self.remote.ask("again", which=0)["out"])
        if self.error(late, want, args)[0] <= 1:
            return "LATE_WRITE", "the output was wrong when the function returned, but correct 0.1 s later"
        return "", ""

    def _wrong_in(self, got: Any, want: Any) -> List[Tuple[Any, Any, Any]]:
        pairs = zip(_tensors_of(got), _tensors_of(want))
        known = [(g, w._reference) for g, w in pairs if getattr(w, "_reference", None) and g.shape == w.shape]
        return [(g, known_reference, known_reference.apart(g) > 1) for g, known_reference in known]

    def _memory_in(self, got: Any, want: Any) -> Optional[Tuple[str, str]]:
        """Recognises memory that was never written: wrong elements that hold the judge's fill byte, or that are all
        equal."""
        import torch

        for g, known_reference, wrong in self._wrong_in(got, want):
            if g.dtype.is_complex or not bool(wrong.any()):
                continue
            raw = g.reshape(-1).contiguous().view(torch.uint8).reshape(-1, g.element_size())
            left = (raw == _poison_byte(math.nan)).all(-1) | (raw == _poison_byte(1.0)).all(-1)
            left = left.reshape(g.shape)
            n, of = int((left & wrong).sum()), g.numel()
            if n >= 0.99 * of:
                return "UNINIT_READ", "the output was not written: it holds old memory contents"
            if n > 1 and n >= int(wrong.sum()) // 2:
                return "PARTIAL_WRITE", f"{n} of {of} elements were not written: they hold old memory contents"
            first = g.reshape(-1)[0]
            if of > 4 and bool((g == first).all()) and float(known_reference.value.reshape(-1).std()) > 0:
                return "CONSTANT_OUTPUT", f"each of {of} elements is {float(first):g}"
            odd = g[wrong]
            if of > odd.numel() > 1 and bool((odd == odd.reshape(-1)[0]).all()):
                return "PARTIAL_WRITE", f"{odd.numel()} of {of} elements are {float(odd.reshape(-1)[0]):g}"
        return None

    def _how_many(self, got: Any, want: Any) -> str:
        pairs = self._wrong_in(got, want)
        if not pairs:
            return "the output is not equal to the expected output"
        n, of = sum(int(w.sum()) for _, _, w in pairs), sum(w.numel() for _, _, w in pairs)
        worst = max(known_reference.error(g) for g, known_reference, _ in pairs)
        return f"{n} of {of} values are wrong; the relative error is {worst:.2g}"

    @staticmethod
    def _class(bits: float) -> str:
        return min(_CLASSES, key=lambda c: abs(c[0] - bits))[1]

    def check(
        self,
        what: str,
        args: Optional[Tuple[Any, ...]] = None,
        word: str = "WRONG",
        kind: str = "normal",
        sizes: str = "as given",
        remember: bool = True,
        **options: Any,
    ) -> Optional[bool]:
        """word: the flag that a wrong output gets. kind, sizes: if args is None, the judge makes inputs with random
        data of this kind and with these sizes. remember: keep the expected output, to recognise candidates that
        return it later. Returns whether the output was correct, or None if the reference itself raised an
        exception."""
        self.odd = kind != "normal"
        if args is None:
            try:
                args = self.inputs.fresh(kind, sizes)
                want = self.expected(args)
            except Exception as error:
                self.probes[what] = f"skipped: the reference raised {type(error).__name__}"
                return None
        else:
            want = self.expected(args)
        self.checks += 1
        self.probes[what] = "ran"
        before = hashlib.sha256(_encode(args)).hexdigest()
        reply = self.ask(args, want, **options)
        if "error" in reply:
            if word in ("SHAPE_BOUND", "LAYOUT_BOUND"):
                self.probes[what] = f"the candidate raised {reply['error']}"
                return True
            self.flag("CRASHED", f"{what}: {reply['error']}")
            return False
        if not self.inplace and reply["after"] != before:
            self.flag("INPUT_CHANGED", f"{what}: the call changed an input")
        if reply.get("outside"):
            self.flag("OUT_OF_BOUNDS", f"{what}: the call changed memory next to {reply['outside']}")
        if reply.get("seen"):
            self.flag("LOOKS_AROUND", f"{what}: the function accessed {', '.join(reply['seen'])}")
        if reply.get("errors"):
            self.flag("FALLBACK", f"{what}: {reply['errors'][0]}")
        for known_reference in [t._reference for t in _tensors_of(want) if getattr(t, "_reference", None)]:
            known_reference.overflows, known_reference.infinite = kind == "huge", kind in ("nan", "inf")
        worst, mismatch = self.error(reply["value"], want, args)
        # for unusual data, two correct algorithms may differ by more than the tolerance
        most = 8 if self.inputs.tensors and self.rtol is None and kind not in ("normal", "nan", "inf") else 1
        if isinstance(reply["value"], _Other) or worst > most:
            self._condemn(what, args, want, reply, mismatch, word, options)
            return False
        if reply["shares"] and not self.inplace and not self.views:
            self.flag("INPUT_RETURNED", f"{what}: the output shares memory with an input")
        if kind == "normal" and word != "LAYOUT_BOUND" and _dtype_of(want) != "int":
            self.found.append(_bits_found(reply["value"], want))
            pairs = zip(_tensors_of(reply["value"]), _tensors_of(want))
            known = [(w._reference.error(g), w._reference.ratio) for g, w in pairs if getattr(w, "_reference", None)]
            self.errors += known[:1]
        if remember:
            self.former.append(want)
            del self.former[40 if len(reply["out"]) < 1 << 20 else 10 :]
        self.right.append(hashlib.sha256(reply["out"]).digest())
        return True

    def _condemn(
        self,
        what: str,
        args: Any,
        want: Any,
        reply: Dict[str, Any],
        mismatch: str,
        word: str,
        options: Dict[str, Any],
    ) -> None:
        name, evidence = self._late(reply, want, args)
        if not name:
            name, evidence = self._out_of_order(args, want, options)
        if not name:
            name, evidence = self._named(reply, want, args, mismatch, word)
        self.answers.append(hashlib.sha256(reply["out"]).digest())
        if name in (word, "CONSTANT_OUTPUT") and "overwrite" not in options:
            again = self.ask(args, want, **options)
            if "error" not in again and self.error(again["value"], want, args)[0] <= 1:
                name, evidence = "FLAKY", "one call was wrong, but the next call with the same inputs was correct"
            elif (
                word in ("DATA_SHORTCUT", "NAN_PASS", "SHAPE_BOUND", "LAYOUT_BOUND")
                and not self._still_right()
            ):
                name, evidence = "PHASE_DEPENDENT", "the public example's output was correct earlier, but is wrong now"
        self.flag(name, f"{what}: {evidence}")

    def _out_of_order(self, args: Any, want: Any, options: Dict[str, Any]) -> Tuple[str, str]:
        """SIDE_STREAM: the call is correct between two GPU synchronisations, and wrong if its inputs are written
        after a delay."""
        if self.device is None or "overwrite" in options or not self.checks > 0:
            return "", ""
        others = {k: v for k, v in options.items() if k != "late"}
        right = []
        for how in ({"synchronized": True}, {"late": True}):
            if how.get("late") and options.get("layout"):
                return "", ""
            again = self.ask(args, want, **{**others, **how})
            right.append("error" not in again and self.error(again["value"], want, args)[0] <= 1)
        if right == [True, False]:
            return "SIDE_STREAM", "the output is correct only if the GPU is synchronised around the call"
        return "", ""

    def _still_right(self) -> bool:
        want = self.expected(self.inputs.examples)
        reply = self.ask(_copy(self.inputs.examples), want)
        return "error" not in reply and self.error(reply["value"], want, self.inputs.examples)[0] <= 1

    # --- the steps ---

    def admit(self) -> None:
        examples = self.inputs.examples
        own, fresh = _copy(examples), self.inputs.fresh()
        try:
            output = self.reference(*own)
            self.inplace, self.views = output is None, _shares(output, own)
            want, again, want_fresh = self.expected(examples), self.expected(examples), self.expected(fresh)
        except Exception as error:
            return self.flag("INVALID_TASK", f"the reference raised {type(error).__name__}: {error}")
        if self.error(want, again, examples)[0] > 1:
            self.flag("INVALID_TASK", "the reference gives different outputs for the same inputs")
        if self.inplace and self.error(fresh, want_fresh, fresh)[0] <= 1:
            self.flag("INVALID_TASK", "the check passes for a function that returns nothing and does not change its inputs")
        if (
            not self.inplace
            and _dtype_of(want_fresh) != "int"
            and self.error(_zeros_like(want_fresh), want_fresh, fresh)[0] <= 1
        ):
            self.flag("INVALID_TASK", "an output of zeros passes the check")
        self.decoy = _copy(want_fresh)
        # if a candidate returns the public example's output before it has seen the example, it knew the output in
        # advance
        self.former = [want]
        self.probes["task"] = "ran"

    def correctness(self) -> None:
        good = self.check("fresh inputs") and self.check("fresh inputs again")
        self.public = True
        right_there = self.check("the public example", _copy(self.inputs.examples), remember=False)
        self.public = False
        if not good and right_there and {f["word"] for f in self.flags} <= {"WRONG"}:
            self.flags = [f for f in self.flags if f["word"] != "WRONG"]
            self.flag("SEED_BOUND", "the output is correct for the public example, but wrong for other inputs")
        if self.condemned:
            return
        self.precision()
        if self.condemned:
            return
        if self.inputs.make_own:
            self.probes["kinds of data, sizes"] = "skipped: the task makes its own inputs"
        else:
            self.kinds_and_sizes()
        if self.inputs.modules:
            for layout in ("strided", "misaligned"):
                self.check(f"layout: {layout}", word="LAYOUT_BOUND", layout=layout)
        else:
            self.probes["layout"] = "skipped: the inputs are not arrays"

    def kinds_and_sizes(self) -> None:
        for kind in _KINDS + (("huge",) if self.inputs.tensors else ()):
            self.check(f"data: {kind}", word="DATA_SHORTCUT", kind=kind)
        self.check("data: a spike elsewhere", word="DATA_SHORTCUT", kind="spike")
        for kind in ("nan", "inf"):
            self.check(f"data: one {kind}", word="NAN_PASS", kind=kind, remember=False)
        for sizes in list(_NEXT_SIZE)[1:] + [_AT_RANDOM]:
            if self.inputs.tensors and self.inputs.points and sizes in _SHRINK:
                self.probes[f"sizes: {sizes}"] = "skipped: integer inputs may be indices into arrays that would shrink"
                continue
            self.check(f"sizes: {sizes}", word="SHAPE_BOUND", sizes=sizes)
        # sizes are random in each run, so a candidate cannot treat certain sizes as special cases
        for kind in _KINDS:
            self.check(f"sizes: {_AT_RANDOM}, {kind}", word="SHAPE_BOUND", kind=kind, sizes=_AT_RANDOM)

    def memory(self) -> None:
        """Tests for results reused from earlier calls, outputs that later calls change, and work that continues after
        the call."""
        args = self.inputs.fresh()
        self.check("before a change", args)
        for _ in range(3):  # changes one element of inputs that the candidate has seen
            args = _copy(args)
            edit = self.inputs.edit(7.0, self.inputs.places_of(args))
            if edit:
                _apply(args, edit)
                self.check("one element changed", args, word="MEMOIZED")
        self.check("new contents in the same input objects", self.inputs.fresh(), word="MEMOIZED", overwrite=True)
        self.check("errors and callers", trace=True)
        if self.device is not None:
            for _ in range(2):
                self.check("inputs written after a delay", word="SIDE_STREAM", late=True)
        x = self.inputs.fresh()
        want = self.expected(x)
        first = self.ask(x, want, poison=math.nan)
        if not self.inplace and "out" in first:
            self.gpu_lock.yield_gpu(0.03)
            self.probes["outputs later"] = "ran"
            if self.remote.ask("again", which=0)["out"] != first["out"]:
                self.flag("LATE_WRITE", "an output changed within 30 ms after the function had returned")
            other = self.inputs.fresh()
            self.ask(other, self.expected(other))
            if self.remote.ask("again", which=1)["out"] != first["out"]:
                self.flag(
                    "OUTPUT_ALIASED", "an output changed during a later call with other inputs"
                )
        answers = [self.ask(x, want, poison=p) for p in (math.nan, 1e30, math.nan, 1e30, math.nan, 1e30)]
        self.probes["repeats and poison"] = "ran"
        bad = [i for i, a in enumerate(answers) if "error" in a or self.error(a["value"], want, x)[0] > 1]
        if bad and all(i % 2 for i in bad) and len(bad) == 3:
            self.flag("UNINIT_READ", "the output is wrong if freed memory holds 1e30")
        elif bad:
            self.flag(
                "FLAKY" if len(bad) < 6 else "PHASE_DEPENDENT",
                f"{len(bad)} of 6 calls with the same inputs are wrong",
            )
        elif any(a["out"] != answers[0]["out"] for a in answers):
            self.flag("NONDETERMINISTIC", "6 calls with the same inputs gave different bits")

    def started(self) -> None:
        self.remote = self._process(self.spec)
        self.replaced()
        if self.inputs.tensors:  # the first call may compile, so the judge makes this call without the GPU lock
            args = self.inputs.fresh()
            self.former.append(self.expected(args))
            reply = self.remote.ask("call", args=args, inplace=self.inplace)
            if "error" not in reply:
                self.answers.append(hashlib.sha256(reply["out"]).digest())

    @property
    def modules(self) -> List[str]:
        import importlib.util

        triton = self.device is not None and importlib.util.find_spec("triton")
        return self.inputs.modules + (["triton.testing"] if triton else [])

    def _process(self, spec: Dict[str, str]) -> _Remote:
        modules = self.modules
        library = _find_library() if self.inputs.tensors else None
        return _Remote(
            spec,
            modules,
            self.timeout,
            modules if "torch" in modules else (),
            self.gpu_lock,
            library=library,
            gpu=self.device,
        )

    def replaced(self) -> None:
        """Flags functions, modules and settings that have changed since the candidate's process began."""
        changes = self.remote.ask("report_changes")
        self.probes["replaced functions"] = "ran"
        changed = changes.get("changed", [])
        clocks = [n for n in changed if n.startswith(_CLOCKS)]
        others = [n for n in changed if n not in clocks]
        if clocks:
            self.flag("TIMER_PATCHED", "replaced: " + ", ".join(clocks[:5]))
        if others:
            self.flag("CHECK_PATCHED", "replaced: " + ", ".join(others[:5]))
        if changes.get("shadowed"):
            self.flag("MODULE_SHADOW", "replaced: " + ", ".join(changes["shadowed"]))
        if changes.get("settings"):
            self.flag("GLOBAL_STATE", "changed: " + ", ".join(changes["settings"]))

    def quiet(self) -> None:
        self.replaced()
        x = self.inputs.fresh()
        self.ask(x, self.expected(x))
        self.threads()
        if self.remote.files():
            self.flag("FILE_LEFT", ", ".join(self.remote.files()[:5]))

    def threads(self) -> None:
        self.probes["processor time afterwards"] = "ran"
        looks = idle = 0
        while (
            idle < 5 and looks < 100
        ):  # waits, because threads of libraries keep spinning for a while after a call
            self.gpu_lock.yield_gpu(0.01)
            looks, idle = looks + 1, 0 if self.remote.busy() else idle + 1
        if idle < 5:
            self.flag("THREAD", "threads of the candidate's process were still running 1 s after a call")
        if self.remote.children():
            self.flag("THREAD", "the candidate left child processes running")

    @property
    def bits(self) -> float:
        """Returns the median of the estimated mantissa bits. The median ignores a few estimates that are too low, for
        example because the terms of a sum cancel."""
        return sorted(self.found)[len(self.found) // 2] if self.found else math.inf

    def precision(self) -> None:
        if self.rtol is not None:
            return
        asked = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}.get(
            _dtype_of(self.expected(self.inputs.examples)), 0
        )
        if self.bits < asked * 0.62:
            evidence = f"the error corresponds to {self.bits:.0f} mantissa bits, but the element type has {asked}"
            self.flag(f"LOW_PRECISION:{self._class(self.bits)}", evidence)
        if asked in (8, 11) and self.errors:
            mine, theirs = (sorted(of)[len(of) // 2] for of in zip(*self.errors))
            if mine > 3 * theirs and mine > 2.0**-asked:
                evidence = f"the relative error is {mine:.2g}; the relative error of the reference is {theirs:.2g}"
                self.flag("LOW_PRECISION:accumulator", evidence)

    # --- speed on a GPU: measured by the engine in the candidate's process, verified with the judge's clock ---

    def ready(self) -> None:
        """Does slow preparations, such as compiling the reference, before the judge takes the exclusive GPU lock."""
        if self.device is None:
            return
        self.replaced()
        if self.condemned:
            return
        compiled = bool(self.more.get("compiled", True))
        args = self.inputs.fresh()
        reply = self.remote.ask("ready", reference_spec=self.reference_spec, compiled=compiled, args=args)
        if "error" in reply:
            raise Error(f"judge: the reference cannot be imported into the candidate's process: {reply['error']}")
        if reply["changed"]:
            self.flag("CHECK_PATCHED", "replaced: " + ", ".join(reply["changed"][:5]))
        if reply["said"]:
            self.probes["compiled reference"] = "skipped: " + reply["said"]
        self.remote.ask("set_pool", pool=self.inputs.pool)
        made = self.inputs.pool["sets"]
        self.request = self._request_of(_copy(made[0]) if made else args)

    def measure(self) -> None:
        self.response = self.remote.ask("measure", **self.request)
        if "error" in self.response:
            raise _ProcessEnded("CRASHED", f"while it was timed: {self.response['error']}")

    def timed(self) -> None:
        self.request["pool"] = self.inputs.pool
        self._check_timed_outputs(self.request, self.response)
        self._note_records(self.response["records"])

    def _request_of(self, args: Tuple[Any, ...]) -> Dict[str, Any]:
        size = sum(t.nbytes for t in _tensors_of(args) + _tensors_of(self.expected(args)))
        draw = self.inputs.edits.randrange
        keep = [draw(2, 8), draw(8, 32), draw(32, 128), draw(128, 512)] if size < 1 << 28 else [draw(2, 64)]
        # "transfer" is always allowed, because PyTorch often copies within the GPU
        may = {"SYNC_INSIDE": "sync", "TRANSFER": "sync", "ALLOC_INSIDE": "alloc"}
        return {
            "args": args,
            "draws": self.inputs.draws(1 << 12),
            "keep": keep,
            "inplace": self.inplace,
            "host": self.device is None,
            "bytes": float(size) if self.more.get("bytes") is None else self.more["bytes"],
            "flops": self.more.get("flops"),
            "max_time": self.max_time,
            "precision": 0.01,
            "dtype": next((_dtype_of(t) for t in _tensors_of(args) if _dtype_of(t) != "int"), None),
            "device": self.device,
            "expect": sorted({"transfer"} | {may[w] for w in self.allow if w in may}),
        }

    def _check_timed_outputs(self, m: Dict[str, Any], reply: Dict[str, Any]) -> None:
        try:
            outputs = _decode(reply["out"])
        except Exception:
            raise _ProcessEnded("FORGED_RESULT", "the outputs that the process sent cannot be decoded") from None
        wrong, looked = [], 0
        for count, got in zip(reply["counts"], outputs):
            args = _TimedFunction.inputs_at(count, m)
            want = self.expected(args)
            worst, mismatch = self.error(got, want, args)
            looked += 1
            if isinstance(got, _Other) or worst > 1:
                wrong.append(mismatch or f"sample {count}: {self._how_many(got, want)}")
        self.checks += looked
        self.probes["timed outputs"] = f"ran: {looked}"
        if wrong:
            self.flag("PHASE_DEPENDENT", f"{len(wrong)} of {looked} timed outputs are wrong: {wrong[0]}")

    def _note_records(self, records: Dict[str, Dict[str, Any]]) -> None:
        mine, theirs = records["candidate beside reference"], records["reference beside reference"]
        compiled = records.get("compiled beside compiled", {})
        beside = records.get("candidate beside compiled", {})
        for record in (mine, beside):
            said, words = str(record.get("message") or ""), record.get("flags") or ()
            named = [w for w in words if w in _FLAGS and w != "NO_WORK"]
            if "captur" in said.lower() and not named:  # PyTorch's exception for a call that cannot be captured
                self.flag("TRANSFER" if "copy" in said.lower() else "SYNC_INSIDE", said)
                continue
            own = [w for w in words if w not in (theirs.get("flags") or ())]
            for word in own:
                if word in _FLAGS:
                    self.flag(word, said or "the engine set this flag while it timed the candidate")
                elif word in _RAISED and not named:
                    self.flag("CRASHED", f"while it was timed: {said or word}")
        if mine.get("time_ms") is None or theirs.get("time_ms") is None:
            who = "candidate" if mine.get("time_ms") is None else "reference"
            of = mine if mine.get("time_ms") is None else theirs
            self.flag("NO_TIME", f"{who}: {of.get('status')} {of.get('flags')} {of.get('message')}")
        keys = ("time_ms", "time_ms_ci_low", "time_ms_ci_high", "speedup", "speedup_low", "speedup_high")
        keys += ("noise_floor", "samples", "gpu", "cpu", "throughput_gbps", "gflops", "gpu_efficiency", "roof")
        self.speed = {k: mine.get(k) for k in keys}
        self.speed.update(
            comparison=mine.get("verdict"),
            reference_ms=theirs.get("time_ms"),
            compiled_ms=compiled.get("time_ms"),
            speedup_compiled=beside.get("speedup"),
            speedup_compiled_low=beside.get("speedup_low"),
            speedup_compiled_high=beside.get("speedup_high"),
            calls_per_sample=1,
        )

    def clock(self) -> None:
        """Compares the engine's time with the judge's clock, from the times of n and of 3 n calls. If most of the
        time passes before the last call is submitted, the host limits the speed, not the GPU. If the two disagree,
        the measurement is repeated up to eight times over more than one second, because other programs may use the
        GPU."""
        import time

        claimed = self.speed.get("time_ms")
        if claimed is None:
            return
        n = max(8, min(64, int(4 / claimed)))  # the GPU's launch queue must hold 3 n launches
        outer = issue = math.inf
        for i in range(8):
            time.sleep(0.05 * i)
            outer, issue = min((outer, issue), self._slopes(self.request["args"], n))
            if outer <= 1.5 * claimed + 0.005 or issue > 0.7 * outer:
                break
        self.speed.update(outer_ms=outer, issue_ms=issue)
        self.probes["the judge's own clock"] = "ran"
        if outer > 1.5 * claimed + 0.005:
            if issue > 0.7 * outer:
                self.probes["the judge's own clock"] = "ran, but the host limits the speed of calls"
                said = f"by the judge's clock, a call takes {_show_time(outer)}, and submitting the call takes "
                said += f"{_show_time(issue)}; the candidate's process measured {_show_time(claimed)}"
                self.flag("CLOCK_UNCHECKED", said)
            else:
                said = f"a call takes {_show_time(outer)} by the judge's clock; "
                self.flag("CLOCK_MISMATCH", f"{said}the candidate's process measured {_show_time(claimed)}")

    def _slopes(self, args: Any, n: int) -> Tuple[float, float]:
        """Returns the ms per call, and the ms that the host needs to submit a call. The shortest of several runs
        counts, because other programs may use the processors."""
        low: List[Tuple[float, float]] = []
        size = sum(t.nbytes for t in _tensors_of(args))
        # number of sets of inputs; all sets together take at most 128 MiB, and so do their copies
        each = max(1, min(3 * n, (1 << 27) // max(1, size)))
        self.remote.ask("keep", which=2, n=each, batch=[args])
        for calls in (n, 3 * n):
            low.append(min([self._seconds(calls, each) for _ in range(5)][1:]))  # leaves out the first of 5 runs
        self.remote.ask("keep", which=2, n=0, batch=[args])
        outer = 1e3 * (low[1][0] - low[0][0]) / (2 * n)
        return outer, outer * low[1][1] / low[1][0]

    def _seconds(self, calls: int, each: int) -> Tuple[float, float]:
        """Returns the seconds until the GPU has finished the calls, and until they were submitted. The calls rotate
        through `each` sets of inputs, whose contents are new."""
        import time as clock

        draws = self.inputs.draws(each)
        if draws:
            self.remote.ask("change", which=2, draws=draws)
        self.remote.ask("prepare", which=2, n=calls)
        begin = clock.perf_counter()
        self.remote.go(wait=False, keep=False)
        submitted = clock.perf_counter()
        self.remote.ask("synchronized")
        return clock.perf_counter() - begin, submitted - begin

    def baseline(self) -> None:
        """The judge's process never ran a candidate, so its time of the reference is trusted."""
        m, there = self.request, self.speed.get("reference_ms")
        if there is None:
            return
        key = (str(self.reference_spec), str([(v.shape, v.dtype) for v in _tensors_of(m["args"])]), "alone")
        here, said = _claimed.get(key), ""
        if here is None:
            options: Dict[str, Any] = {**m, "max_time": min(0.2, self.max_time)}
            (record,) = _measure_functions({"reference": _TimedFunction(self.reference, m, ())}, options)
            here, said = record.time_ms, f"skipped: {record.flags} {record.message}"
            _claimed[key] = here
        self.probes["the reference elsewhere"] = "ran" if here else said
        if here and there > 1.3 * here + 0.002:
            said = f"the reference takes {_show_time(there)} in the candidate's process, {_show_time(here)} here"
            self.flag("BASELINE_SLOWED", said)

    def claims(self) -> None:
        if self.gone:
            self.probes["do_bench_ms"] = "skipped: the candidate's process has ended"
            return
        examples = self.inputs.examples
        with self.gpu_lock.exclusive():
            reply = self.remote.ask("claim", args=_copy(examples))
            known = str(self.reference_spec), str([_shape_of(v) for v in examples])
            if known not in _claimed and "error" not in reply:
                _claimed[known] = _do_bench_ms(self.reference, _copy(examples))
        self.claimed.update(do_bench_ms=reply.get("ms"), do_bench_reference_ms=_claimed.get(known))
        self.probes["do_bench_ms"] = "skipped: " + reply["error"] if "error" in reply else "ran"

    # --- speed of work on the host: both functions run in their own processes, and this process times them ---

    def race(self) -> None:
        reference = self._process(self.reference_spec)
        try:
            for remote in (self.remote, reference):
                remote.ask("set_pool", pool=self.inputs.pool)
            batch, empty = self._batch((self.remote, reference), 0.002)
            sides = {
                "reference": _TimedSide(self, reference, batch, False),
                "candidate": _TimedSide(self, self.remote, batch, True),
            }
            interrupts = _Interrupts()
            jobs = {name: _Job(interrupts, side.go, side.prepare, []) for name, side in sides.items()}
            records = _measure(
                jobs, interrupts, name="judge", host=True, precision=0.01, max_time=self.max_time
            )
        finally:
            reference.close()
        for record in records:
            if isinstance(record.exception, _ProcessEnded):
                raise record.exception
        self.probes["timed outputs"] = "ran"
        wrong = sides["candidate"].wrong
        if wrong:
            self.flag("PHASE_DEPENDENT", f"{len(wrong)} timed outputs are wrong: {wrong[0]}")
        self._note_speed(records, len(batch), empty)

    def _batch(self, remotes: Sequence["_Remote"], target: float) -> Tuple[List[Any], float]:
        """Returns the inputs of one timed batch of calls, and the seconds that an empty batch takes. The batch has
        enough calls that each process in `remotes` takes at least `target` seconds, unless a limit on calls or
        bytes is reached."""
        empty = sorted(_timed(remotes[0], []) for _ in range(15))[7]
        batch = [self.inputs.fresh()]
        most = max(1, min(256, (4 << 20) // max(1, len(_encode(self.inputs.examples)))))
        while len(batch) < most and min(_timed(r, batch) for r in remotes for _ in range(2)) < target:
            batch += [self.inputs.fresh() for _ in range(min(len(batch), most - len(batch)))]
        return batch, empty

    def _note_speed(self, records: Sequence[Record], n: int, empty: float) -> None:
        reference, candidate = records
        if reference.time_ms is None or candidate.time_ms is None:
            raise Error(
                f"judge: the {'reference' if reference.time_ms is None else 'candidate'} has no time: "
                f"{reference!r}; {candidate!r}"
            )
        each = lambda v: None if v is None else v / n
        self.speed = {
            "time_ms": each(candidate.time_ms),
            "time_ms_ci_low": each(candidate.time_ms_ci_low),
            "time_ms_ci_high": each(candidate.time_ms_ci_high),
            "reference_ms": each(reference.time_ms),
            "speedup": candidate.speedup,
            "speedup_low": candidate.speedup_low,
            "speedup_high": candidate.speedup_high,
            "noise_floor": candidate.noise_floor,
            "comparison": candidate.verdict,
            "calls_per_sample": n,
            "samples": candidate.samples,
            "own_ms": empty * 1e3 / n,
            "cpu": candidate.cpu,
            "gpu": candidate.gpu,
        }
        shorter = min(reference.time_ms, candidate.time_ms)
        if empty * 1e3 > 0.05 * shorter:
            self.flag("HOST_BOUND", f"{_show_time(empty * 1e3)} of {_show_time(shorter)} are the judge's overhead")

    def repeats(self) -> None:
        """A candidate that keeps results is faster with inputs that it has just seen. Times vary on a busy machine,
        so two measurements must show this, each in both orders."""
        n = self.speed.get("calls_per_sample") or 1
        if self.device is not None:  # n calls take 1 ms, unless their inputs exceed 256 MiB
            n = int(1 / max(self.speed.get("time_ms") or 0, self.speed.get("issue_ms") or 0, 1e-3)) + 1
            n = min(n, (1 << 27) // max(1, sum(t.nbytes for t in self.inputs.tensors)) + 1)
        n = min(n, 64)
        for which in range(2):
            self._keep_fresh(which, n)
        share = self._share_when_seen(n)
        if share is None:
            self.probes["times of repeated and of fresh inputs"] = "skipped: the calls are too short to compare"
            return
        self.probes["times of repeated and of fresh inputs"] = "ran"
        if share < 1:
            share = self._share_when_seen(n) or 1
        if share < 1:
            self.flag("MEMOIZED", f"repeated inputs take {share:.2g} of the time of fresh inputs")

    def _keep_fresh(self, which: int, n: int) -> None:
        """If random contents can be drawn, one set of inputs is sent and copied n times; otherwise n sets are sent."""
        some = 1 if self._drawn(1) else n
        self.remote.ask("keep", which=which, n=n, batch=[self.inputs.fresh() for _ in range(some)])

    def _drawn(self, n: int) -> List[Any]:
        """Returns the random contents of n sets of inputs that the candidate has never seen. Empty if the task makes
        its own inputs, because draws() would only pick from a few stored sets."""
        return [] if self.inputs.make_own else self.inputs.draws(n)

    def _share_when_seen(self, n: int) -> Optional[float]:
        """Returns the time of calls with repeated inputs divided by the time of calls with fresh inputs. Returns 1 if
        the two do not clearly differ, and None if the calls are too short to compare. The candidate's process
        changes the contents itself, because sending new inputs would take too long."""
        nothing: List[float] = []
        # pairs of seconds (fresh inputs, repeated inputs); repeated inputs were measured first in times[0], second
        # in times[1]
        times: Tuple[List[Tuple[float, float]], ...] = ([], [])

        def timed(which: int) -> float:
            # times an empty batch, which also wakes the process for the next timing
            nothing.append(_timed(self.remote))
            return _timed(self.remote, which=which)

        for i in range(14):
            for which in range(2):
                draws = self._drawn(n)
                if draws:
                    self.remote.ask("change", which=which, draws=draws)
                else:
                    self._keep_fresh(which, n)
            timed(0)
            if i % 2 == 0:
                again = timed(0)
                fresh = timed(1)
            else:
                fresh = timed(1)
                again = timed(1)
            times[i % 2].append((fresh, again))
        empty = _quantile(nothing, 0.5)
        shares = []
        for fresh, again in (tuple(zip(*pairs)) for pairs in times):
            before, after = _quantile(fresh, 0.5), _quantile(again, 0.5)
            if before < 6 * empty:
                return None
            apart = _quantile(again, 0.8) < _quantile(fresh, 0.2)
            shares.append(after / before if apart and before > 1.5 * after and before - after > 4 * empty else 1)
        return max(shares)

    def after(self) -> None:
        for _ in range(2):
            self.check("a call after the timed runs", word="PHASE_DEPENDENT")
        if self.probes.get(f"sizes: {_AT_RANDOM}") == "ran":
            self.check("other sizes, after the timed runs", word="SHAPE_BOUND", sizes=_AT_RANDOM)

    def run(self) -> None:
        if "torch" in self.modules:  # the fork server imports the modules while this process tests the task
            _ForkServer.of(tuple(self.modules))
        try:
            with self.gpu_lock.shared():
                self.steps(self.admit)
            if not self.condemned:
                self.judged()
            if self.device is not None and self.more.get("do_bench") and not self.condemned_task:
                self.steps(self.claims, always=True)
        except _ProcessEnded as gone:
            self.probes["do_bench_ms"] = f"skipped: {gone.word}: {gone}"
        finally:
            if self.remote:
                self.remote.close()

    def judged(self) -> None:
        try:
            self.steps(self.started, self.threads)
            with self.gpu_lock.shared():
                self.steps(self.correctness, self.memory, self.precision, self.threads)
            self.steps(self.ready)
            self.compete()
            with self.gpu_lock.shared():
                self.steps(self.after)
                self.quiet()
        except _ProcessEnded as gone:
            self.gone = True
            self.flag(gone.word, str(gone))

    def compete(self) -> None:
        """Times the candidate and the reference. The GPU lock is exclusive only during the measurements."""
        if self.device is not None and not self.condemned:
            with self.gpu_lock.exclusive():
                self.steps(self.measure)
            with self.gpu_lock.shared():
                self.steps(self.timed)
        if not self.condemned:
            with self.gpu_lock.exclusive():
                self.steps(*([self.race] if self.device is None else [self.clock, self.baseline]), self.repeats)

    def steps(self, *of: Callable[[], None], always: bool = False) -> None:
        """Runs the steps in order until one of them finds the candidate or the task invalid. With always=True,
        runs all steps. Records the seconds of each step, without the time spent waiting for the GPU lock."""
        import time as clock

        for step in of:
            if always or not self.condemned:
                began, waited, name = clock.perf_counter(), self.gpu_lock.waited, step.__name__
                try:
                    step()
                finally:
                    took = clock.perf_counter() - began - (self.gpu_lock.waited - waited)
                    self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)

    def verdict(self) -> Verdict:
        levels = [f["level"] for f in self.flags]
        word = next((w for w in _FAILS if w in levels), None)
        v = Verdict(schema=1, verdict=word or self.speed.get("comparison") or "UNRESOLVED", flags=self.flags)
        for key in (
            "speedup",
            "speedup_low",
            "speedup_high",
            "noise_floor",
            "time_ms",
            "time_ms_ci_low",
            "time_ms_ci_high",
            "reference_ms",
            "own_ms",
            "calls_per_sample",
            "samples",
            "cpu",
            "gpu",
            "compiled_ms",
            "speedup_compiled",
            "speedup_compiled_low",
            "speedup_compiled_high",
            "throughput_gbps",
            "gflops",
            "gpu_efficiency",
            "roof",
            "outer_ms",
            "issue_ms",
        ):
            v[key] = None if word else self.speed.get(key)  # a wrong or rejected candidate has no speed
        bits = None if self.bits == math.inf else round(self.bits, 1)
        middle = lambda i: sorted(e[i] for e in self.errors)[len(self.errors) // 2] if self.errors else None
        v.update(
            error=middle(0),
            reference_error=middle(1),
            do_bench_ms=self.claimed.get("do_bench_ms"),
            do_bench_reference_ms=self.claimed.get("do_bench_reference_ms"),
            bits_found=bits,
            checks=self.checks,
            probes=self.probes,
            seconds={**self.seconds, "waited": round(self.gpu_lock.waited, 3)},
            seed=self.inputs.seed,
            candidate=self.spec,
            reference=self.reference_spec,
            kbench_version=__version__,
            python=sys.version.split()[0],
        )
        return v


def judge(
    candidate: Any,
    reference: Any,
    inputs: Any,
    *,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    seed: Optional[int] = None,
    allow: Iterable[str] = (),
    timeout: float = 60,
    max_time: float = 1,
    bytes: Optional[float] = None,
    flops: Optional[float] = None,
    compiled: bool = True,
    do_bench: bool = False,
) -> Verdict:
    """Tests a submitted function for known ways to appear fast, and times it against a trusted reference. Returns a
    Verdict.

    The judge is not a security boundary: code that attacks the judge's processes can still deceive the judge. Run
    a hostile candidate in a container or a virtual machine, and read its source before you believe a speed.

    candidate: "file.py:name", or a function at the top level of a module. A separate process imports the
        candidate.
    reference: a function at the top level of a module. The judge's process calls the reference to get the expected
        outputs; a separate process times the reference.
    inputs: a tuple of example arguments (arrays, lists of numbers, numbers). The judge makes random inputs with
        the structure of the examples, and varies their sizes and the kind of their data. Alternatively, `inputs`
        is a function that takes a random.Random and returns a tuple of arguments. If `inputs` is a function, the
        judge calls it before each call of the candidate. If the reference returns None, the contents of its
        arguments are the output.
    rtol, atol: as in kbench.compare.
    seed: seed of the inputs; by default random and secret.
    allow: names of flags that the task permits; the judge does not raise them.
    timeout: seconds to wait for a reply of the candidate's process.
    max_time: seconds of sampling.
    bytes, flops: bytes moved and floating-point operations done by one call on a GPU, from which the share of the
        measured peak is computed. bytes defaults to the size of all inputs and outputs. Pass `bytes` if a call
        need not read every input.
    compiled: on a GPU, also compare with the reference under torch.compile.
    do_bench: on a GPU, also report the times of triton.testing.do_bench.

    If the inputs are tensors on a GPU, the candidate, the reference and the compiled reference run in interleaved
    rounds on the same buffers, as in kbench.compare. If the reference accepts double, the reference's output in
    double precision is the expected output. A lock keeps two judges from timing on one GPU at the same time.

    Keys of the verdict (None: does not apply; a wrong or rejected candidate has no times and no speedup):
    verdict, flags (word, level, evidence);
    speedup, speedup_low, speedup_high (against the reference, with its 95 % interval), noise_floor;
    time_ms, time_ms_ci_low, time_ms_ci_high, reference_ms, own_ms (the judge's overhead), calls_per_sample, samples;
    compiled_ms, speedup_compiled, speedup_compiled_low, speedup_compiled_high (GPU);
    throughput_gbps, gflops, gpu_efficiency (percent of the peak), roof (the peak) (GPU);
    outer_ms, issue_ms (by the judge's clock: time of a call, and time to submit it) (GPU);
    do_bench_ms, do_bench_reference_ms; bits_found (estimated mantissa bits);
    error, reference_error (tensors: root mean square of the error divided by that of the values);
    checks (number of outputs checked), probes (what was tested), seconds (by step; waited: for the GPU lock);
    seed, cpu, gpu, candidate, reference, kbench_version, python.

    Raises Error if the arguments are invalid or no time could be measured.
    """
    import secrets

    seed = secrets.randbits(48) if seed is None else seed
    for name, value in (("rtol", rtol), ("atol", atol), ("bytes", bytes), ("flops", flops)):
        _number(f"judge: {name}", value or 0)
    for name, value in (("max_time", max_time), ("timeout", timeout)):
        _number(f"judge: {name}", value, 1e-3)
    if not callable(reference):
        raise Error("judge: the reference must be a function at the top level of a module, not a file name.")
    unknown = [w for w in allow if w not in _FLAGS]
    if unknown:
        raise Error(f"judge: allow has an unknown flag '{unknown[0]}'. Known are {', '.join(_FLAGS)}.")
    spec, reference_spec = _spec_of(candidate, ("candidate", getattr(reference, "__name__", ""))), _spec_of(reference)
    more = {"bytes": bytes, "flops": flops, "compiled": compiled, "do_bench": do_bench}
    j = _Judge(spec, reference, reference_spec, _Inputs(inputs, seed), rtol, atol, allow, timeout, max_time, more)
    if spec.get("path") and spec.get("path") == reference_spec.get("path"):
        j.flag("TASK_SHARED", spec["path"])
    j.run()
    return j.verdict()


# --- python -m kbench ---------------------------------------------------------------------------------------


def _judge_main(words: Sequence[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m kbench judge",
        description="Judges whether a function does a task correctly, and how fast. A task is a Python file "
        "that defines `reference`, a function that returns the expected outputs, and `inputs`: a tuple of example "
        "arguments, or a function that takes a random.Random and returns such a tuple. If the task file also defines "
        "`rtol`, `atol`, `allow`, `bytes` or `flops`, the judge uses these values. Prints the verdict as JSON. "
        "Exit code: 0 if the candidate passed, 1 if the verdict is INVALID_TASK, REJECTED, WRONG or SUSPECT, 2 for a "
        "usage error. The judge looks for known tricks; it is not a security boundary.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="FILE.py:NAME; NAME defaults to `candidate`, the reference's name, or the last function",
    )
    parser.add_argument(
        "--task", metavar="TASK.py", help="the task file; without --task, FILE is also the task and is trusted"
    )
    parser.add_argument("--rtol", type=float, help="relative tolerance (default: the task's, or by element type)")
    parser.add_argument("--seed", type=int, help="seed of the inputs (default: random and secret)")
    parser.add_argument("--max-time", type=float, default=1, metavar="SECONDS", help="seconds of sampling (1)")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="seconds to wait for a reply (60)")
    parser.add_argument("--no-compile", action="store_true", help="GPU: do not compare with torch.compile(reference)")
    parser.add_argument("--do-bench", action="store_true", help="GPU: also report the times of Triton's do_bench")
    o = parser.parse_args(list(words))
    file = o.file.partition(".py:")[0] + (".py" if ".py:" in o.file else "")
    if o.task and not (os.path.isfile(file) and os.path.isfile(o.task) and os.path.samefile(file, o.task)):
        return _judge_with(o, o.task)
    # FILE is imported in a child process, because importing it may end the process
    sys.stdout.flush()
    answer, say = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(say, bytes([_judge_with(o, file)]))
        sys.exit()
    os.close(say)
    code = os.read(answer, 1)
    os.close(answer)
    os.waitpid(pid, 0)
    if not code:
        _say(f"judge: importing {file} ended the process before there was a verdict")
    elif code[0] == 0:
        _say(f"judge: {file} is candidate and task, so it can fake its verdict. Judge untrusted files with --task.")
    return code[0] if code else 1


def _judge_with(o: Any, path: str) -> int:
    try:
        if not os.path.isfile(path):
            raise Error(f"judge: there is no file {path}")
        try:
            place = _import_function({"path": path, "name": "__dict__"})
        except Exception as error:
            raise Error(f"judge: {path} cannot be imported: {type(error).__name__}: {error}") from error
        missing = [k for k in ("reference", "inputs") if k not in place]
        if missing:
            raise Error(
                f"judge: {path} has no `{missing[0]}`. Name the task file with --task."
            )
        verdict = judge(
            o.file,
            place["reference"],
            place["inputs"],
            seed=o.seed,
            max_time=o.max_time,
            timeout=o.timeout,
            rtol=place.get("rtol") if o.rtol is None else o.rtol,
            atol=place.get("atol"),
            allow=place.get("allow", ()),
            bytes=place.get("bytes"),
            flops=place.get("flops"),
            compiled=not o.no_compile,
            do_bench=o.do_bench,
        )
    except Error as error:
        _say(f"error: {error}")
        return 2
    print(json.dumps(verdict, indent=1, allow_nan=False))
    return 1 if verdict["verdict"] in _FAILS else 0


_USAGE = """\
python -m kbench judge FILE [--task TASK.py]   judge a submitted function (see judge --help)
python -m kbench --load FILE...                show records as a table; --html, --csv, ... write other formats

A script that calls kbench.main() takes kbench's options: python SCRIPT --help lists these options."""


def _main(words: Sequence[str]) -> int:
    if words and words[0] == "judge":
        return _judge_main(words[1:])
    if words and words[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    if not words or not words[0].startswith("-"):
        if words:
            _say(f"error: there is no command '{words[0]}'; the only command is judge")
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        return _call_main(["kbench", *words])
    except Error as error:
        _say(f"error: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
