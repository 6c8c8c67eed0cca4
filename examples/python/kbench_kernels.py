# SPDX-License-Identifier: MIT OR Unlicense
"""kbench.kernels: call the kernels of kbench_kernels.cuh on tensors, check them with reference implementations on the
CPU (oracles), and compare them with PyTorch, Triton and other libraries (peers).

    import kbench
    y = kbench.kernels["softmax", "fwd", "onepass"](x)  # x: torch, cupy, anything with __cuda_array_interface__
    y.sum().backward()                                  # if the operation has a backward kernel
    want = kbench.kernels["softmax", "fwd"].oracle(x)   # in double precision on the CPU; also numpy arrays and lists
    kbench.kernels.table()                              # lists all operations
    rows = kbench.kernels.suite(["softmax"])            # compares with the peers; rows.table() prints the result

    python3 kbench_kernels.py [--json FILE] [--op A,B] [--dtype f32] [--peers A,B] [--summary | --missed]
    python3 kbench_kernels.py --sizes small             # tensors that stay in the L2 cache, launched as CUDA graphs
    python3 kbench_kernels.py --load FILE               # the table of a stored run

Only Python's standard library is required, and a GPU only for calls that run on one. The tables, formulas and oracles
are built with cc. Kernels are built with nvcc on their first call, one group of operations in one element type at a
time. Libraries are stored in a folder under ~/.cache/kbench whose name is a hash of the header and the build command.
Environment variables:

    KBENCH_KERNELS_CUH  path of kbench_kernels.cuh
    KBENCH_KERNELS_LIB  path of a library that is already built and has all kernels that will be called
    NVCC                nvcc and its options
    CC, CFLAGS, CUDA_HOME, KBENCH_NO_CUDA  as in kbench.py
"""

from __future__ import annotations

import ctypes as C
import difflib
import itertools
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import threading
from array import array
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import kbench
from kbench import Error, Record, Records

__all__ = ["kernels", "Kernels", "Operation", "Kernel", "Launch", "Comparisons"]

_VERSION = 100  # kbk_abi("version")
_TICKETS = 256  # bytes at the start of a workspace that hold counters
_MOST_TENSORS, _MOST_OUTPUTS = 12, 4
_DTYPES = ("f32", "f16", "bf16")
_SIZES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "i32": 4, "i64": 8, "e4m3": 1}
_LONG = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i32": "int32",
    "i64": "int64",
    "e4m3": "float8_e4m3fn",
}
_SHORT = {long: short for short, long in _LONG.items()}
_FAMILIES = ("map", "pick", "sum", "rows", "gemm", "attn", "lookup")  # kbk_op.family
_SIZE_NAMES = "batch heads rows cols k vocabulary stride among".split()  # fields of kbk_shape
# Key: a letter of a signature, such as C in x[*,C]; value: the field of kbk_shape that holds this size. The
# signature of the operation "strided" also has the letter X, the number of input elements: n times the stride.
_LETTERS = {"N": "cols", "C": "cols", "D": "cols", "R": "rows", "M": "rows", "S": "rows", "K": "k", "V": "vocabulary"}
_LETTERS.update({"A": "among", "Z": "batch", "B": "batch", "H": "heads"})
_LAYOUTS = ("nn", "nt", "tn")
_IN = 0
# index: kbk_tensor.kind; value: the tensor's fixed element type, or None if the tensor has the kernel's element type
_KINDS = (None, "f32", "i32", "i64", "e4m3")
_VENDOR, _UNORDERED, _COPIES, _ALLOCATES, _PAGEABLE, _TF32 = 2, 4, 8, 16, 32, 64  # kbk_variant.origin


# --- the structs of kbench_kernels.cuh, and the libraries that are built from it ----------------------------


class _Row(C.Structure):
    _fields_ = [
        *((name, C.c_char_p) for name in "operation direction implementation formula signature sizes note group".split()),
        *((name, C.c_int32) for name in "family rung origin dtypes sm exact".split()),
        ("alignment", C.c_int32 * 3),
    ]


class _Shape(C.Structure):
    _fields_ = [
        *((name, C.c_int64) for name in _SIZE_NAMES),
        ("p", C.c_double),
        ("causal", C.c_int),
        ("layout", C.c_int),
        ("sequential", C.c_int),
        ("seed", C.c_uint64),
        ("strides", C.c_int64 * 3 * _MOST_TENSORS),
    ]


class _Args(C.Structure):
    _fields_ = [
        ("s", _Shape),
        ("inputs", C.c_void_p * 8),
        ("outputs", C.c_void_p * _MOST_OUTPUTS),
        ("workspace", C.c_void_p),
        ("workspace_bytes", C.c_size_t),
        ("scalar", C.c_float),
    ]


class _Tensor(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("role", C.c_int),
        ("kind", C.c_int),
        ("count", C.c_int64),
        ("per_unit", C.c_int64),
        ("scales", C.c_int64),
        ("fill", C.c_int),
        ("a", C.c_double),
        ("b", C.c_double),
        ("place", C.c_int),
        ("optional", C.c_int),
    ]


class _Report(C.Structure):
    _fields_ = [
        ("why", C.c_char_p),
        ("bad", C.c_int64),
        ("index", C.c_int64),
        *((name, C.c_double) for name in "got want bound norm norm_bound".split()),
    ]


_SIGNATURES = {
    "kbk_abi": (C.c_int64, [C.c_char_p]),
    "kbk_row_get": (C.c_int, [C.c_int, C.POINTER(_Row)]),
    "kbk_row_find": (C.c_int, [C.c_char_p] * 3),
    "kbk_row_tensors": (C.c_int, [C.c_int, C.POINTER(_Shape), C.POINTER(_Tensor)]),
    "kbk_row_units": (C.c_int64, [C.c_int, C.POINTER(_Shape)]),
    "kbk_row_workspace": (C.c_int64, [C.c_int, C.POINTER(_Shape), C.c_int]),
    "kbk_row_flops": (C.c_double, [C.c_int, C.POINTER(_Shape)]),
    "kbk_row_bytes": (C.c_double, [C.c_int, C.POINTER(_Shape), C.c_int]),
    "kbk_row_launch": (C.c_char_p, [C.c_int, C.c_int, C.POINTER(_Args), C.c_int, C.c_void_p]),
    "kbk_row_oracle": (
        C.c_char_p,
        [C.c_int, C.POINTER(_Shape), C.c_int, C.c_void_p, C.c_void_p, C.c_int64, C.c_int64],
    ),
    "kbk_row_fill": (
        C.c_char_p,
        [C.c_int, C.POINTER(_Shape), C.c_int, C.c_int, C.c_uint64, C.c_int64, C.c_int64, C.c_void_p],
    ),
    "kbk_row_verify": (
        C.c_int,
        [C.c_int, C.c_int, C.POINTER(_Shape), C.c_int, C.c_void_p, C.c_void_p, C.c_int64, C.c_int64]
        + [C.POINTER(_Report)],
    ),
}


def _find_header() -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    given = os.environ.get("KBENCH_KERNELS_CUH")
    if given and not os.path.isfile(given):
        raise Error(f"KBENCH_KERNELS_CUH={given} is no file. Set it to the path of kbench_kernels.cuh.")
    places = [given] if given else [os.path.join(here, *p, "kbench_kernels.cuh") for p in (("..", ".."), ())]
    for place in places:
        if place and os.path.isfile(place):
            return os.path.normpath(place)
    raise Error("kbench_kernels.cuh was not found. Set KBENCH_KERNELS_CUH to its path.")


def _vendor_options() -> List[str]:
    cuda = kbench._find_cuda()
    there = cuda and any(os.path.isfile(os.path.join(folder, "cublas_v2.h")) for folder in cuda.include)
    return ["-DKBK_CUBLAS"] if there else []


def _host_command(header: str, output: str) -> List[str]:
    command = shlex.split(os.environ.get("CC") or "cc") + shlex.split(os.environ.get("CFLAGS") or "-O2")
    command += ["-shared", "-fPIC", "-x", "c", "-DKBENCH_SHARED", *_vendor_options()]
    return command + [header, "-o", output, "-lm"]


def _find_nvcc() -> Optional[List[str]]:
    if os.environ.get("NVCC"):
        return shlex.split(os.environ["NVCC"])
    if os.environ.get("KBENCH_NO_CUDA"):
        return None
    roots = [r for r in (os.environ.get("CUDA_HOME"), kbench._TOOLKIT, *kbench._pip_folders()) if r]
    found = shutil.which("nvcc") or next(
        (p for p in (os.path.join(r, "bin", "nvcc") for r in roots) if os.access(p, os.X_OK)), None
    )
    return [found] if found else None


def _nvcc_command(nvcc: List[str], code: Iterable[str], header: str, output: str, *options: str) -> List[str]:
    words = [*nvcc, "-std=c++17", "-O1", *code, "-shared", "-Xcompiler", "-fPIC", "-x", "cu", "-DKBENCH_SHARED"]
    return [*words, *_vendor_options(), *options, header, "-o", output, "-ldl"]


def _no_nvcc(arch: str) -> Error:
    code = [f"-gencode=arch=compute_{arch[3:]},code={arch}"]
    command = _nvcc_command(["nvcc"], code, _find_header(), "libkbench_kernels.so")
    return Error(
        "Kernels are built with nvcc, which was not found. Put nvcc on the PATH, set CUDA_HOME or NVCC (and unset "
        f"KBENCH_NO_CUDA), or run\n    {kbench._PIP}\nOr build all kernels on a machine with nvcc (takes minutes), "
        "and set KBENCH_KERNELS_LIB to that library:\n    " + " ".join(map(shlex.quote, command))
    )


_ARCH = re.compile(r"sm_\d+a?")
_known_codes: Dict[str, List[str]] = {}


def _code_for(nvcc: List[str], arch: str) -> List[str]:
    """Returns nvcc's options for a GPU architecture, such as sm_80 or sm_90a. If the architecture is newer than
    nvcc, the options generate PTX for the newest architecture that nvcc supports. Raises Error if nvcc no longer
    supports the architecture."""
    key = nvcc[0]
    if key not in _known_codes:
        said = ""
        try:
            said = subprocess.run(nvcc + ["--list-gpu-code"], stdout=subprocess.PIPE).stdout.decode()
        except OSError as error:
            raise Error(f"{key}: {error.strerror}. Set NVCC to the path of nvcc.") from None
        _known_codes[key] = re.findall(r"^sm_(\d+)$", said, re.M)
    known = _known_codes[key]
    number = arch[3:].rstrip("a")
    if known and number not in known:
        newest = max(known, key=int)
        if int(number) < int(newest):
            raise Error(f"This nvcc cannot build for {arch}; it supports sm_{', sm_'.join(known)}. Use an older nvcc.")
        return [f"-gencode=arch=compute_{newest},code=compute_{newest}"]
    return [f"-gencode=arch=compute_{arch[3:]},code={arch}"]


class _Library:
    """Holds the functions of a shared library as attributes, and the library's table of kernels. Raises Error if
    the library does not match kbench_kernels.py."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.handle = C.CDLL(path)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self.handle, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise Error(
                f"{path} is no library of kbench_kernels.cuh: {error}. Unset KBENCH_KERNELS_LIB, or build it again."
            ) from None
        sizes = {
            "kbk_row": C.sizeof(_Row),
            "kbk_shape": C.sizeof(_Shape),
            "kbk_args": C.sizeof(_Args),
            "kbk_tensor": C.sizeof(_Tensor),
            "kbk_report": C.sizeof(_Report),
            "tensors": _MOST_TENSORS,
            "outputs": _MOST_OUTPUTS,
            "version": _VERSION,
        }
        wrong = [name for name, size in sizes.items() if self.kbk_abi(name.encode()) != size]
        if wrong:
            raise Error(
                f"{path} does not match kbench_kernels.py (different: {', '.join(wrong)}). Use kbench_kernels.py and "
                "kbench_kernels.cuh of the same version, and unset KBENCH_KERNELS_LIB."
            )
        self.rows: Dict[Tuple[str, str, str], int] = {}
        self.infos: List[_Row] = []
        for i in range(self.kbk_abi(b"rows")):
            row = _Row()
            self.kbk_row_get(i, C.byref(row))
            self.infos.append(row)
            self.rows[(row.operation.decode(), row.direction.decode(), row.implementation.decode())] = i

    def __getattr__(self, name: str) -> Any:  # declares to type checkers that _SIGNATURES adds attributes
        raise AttributeError(name)


_lock = threading.RLock()
_loaded: Dict[Any, _Library] = {}


def _given() -> Optional[_Library]:
    path = os.environ.get("KBENCH_KERNELS_LIB")
    if not path:
        return None
    with _lock:
        if path not in _loaded:
            _loaded[path] = _Library(path)
        return _loaded[path]


def _host() -> _Library:
    """Returns the shared library with the tables of kernels, formulas and oracles. If KBENCH_KERNELS_LIB is not
    set, cc builds a library that lists the kernels but contains no GPU code."""
    given = _given()
    if given:
        return given
    with _lock:
        if "host" not in _loaded:
            path = kbench._build_cached(
                "libkbench_kernels.so",
                _find_header(),
                _host_command,
                "the kernel table and the oracles of kbench.kernels (only once)",
            )
            _loaded["host"] = _Library(path)
        return _loaded["host"]


def _device(group: str, dtype: str, arch: str) -> _Library:
    given = _given()
    if given:
        if given.kbk_abi(b"cuda") != 1:
            raise Error(f"KBENCH_KERNELS_LIB={given.path} was built without CUDA. Build the library with nvcc.")
        return given
    key = (group, dtype, arch)
    with _lock:
        if key in _loaded:
            return _loaded[key]
    if not _ARCH.fullmatch(arch):
        raise Error(f"arch='{arch}' is not an architecture; it has the form sm_80 or sm_90a.")
    nvcc = _find_nvcc()
    if not nvcc:
        raise _no_nvcc(arch)
    code = _code_for(nvcc, arch)
    options = [f"-DKBK_ONLY={group}", f"-DKBK_TYPES={dtype}"]
    command = lambda header, output: _nvcc_command(nvcc, code, header, output, *options)
    what = f"the kernels of {group} in {dtype} for {arch} (only once; may take a minute)"
    path = kbench._build_cached(f"libkbench_{group}_{dtype}.so", _find_header(), command, what)
    with _lock:
        if key not in _loaded:
            _loaded[key] = _Library(path)
        return _loaded[key]


# --- GPUs ---------------------------------------------------------------------------------------------------

_capabilities: Dict[int, int] = {}


def _capability(device: int) -> int:
    """90 for 9.0."""
    if device not in _capabilities:
        library = kbench._library()
        n = [C.c_int(0), C.c_int(0)]
        for value, attribute in zip(n, (75, 76)):  # cudaDevAttrComputeCapabilityMajor and ...Minor
            if library.handle.cudaDeviceGetAttribute(C.byref(value), attribute, device):
                raise Error(f"There is no GPU number {device}.")
        _capabilities[device] = 10 * n[0].value + n[1].value
    return _capabilities[device]


def _need_gpu() -> None:
    library = kbench._library()
    if library.devices():
        return
    why = (
        "kbench's library was built without CUDA, because no CUDA toolkit was found. Put nvcc on the PATH, set "
        f"CUDA_HOME, or run: {kbench._PIP}"
        if not library.cuda
        else "the driver finds no GPU"
    )
    raise Error(f"kernels run on a GPU, and {why}. The oracles run on the CPU: .oracle(...)")


def _arch_of(device: int) -> str:
    capability = _capability(device)
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


class _DeviceArray(kbench._DlpackExporter):
    """An array in GPU memory, for callers without torch and cupy. Deleting the array object frees the memory.
    Raises MemoryError."""

    def __init__(self, shape: Sequence[int], dtype: str, device: int) -> None:
        self.shape, self.dtype, self.device = tuple(shape), _LONG.get(dtype, dtype), device
        self.bytes = math.prod(shape) * _SIZES.get(dtype, 1)
        self.handle, pointer, before = kbench._library().handle, C.c_void_p(), C.c_int(0)
        self.handle.cudaGetDevice(C.byref(before))
        self.handle.cudaSetDevice(device)
        failed = self.handle.cudaMalloc(C.byref(pointer), C.c_size_t(max(1, self.bytes)))
        self.handle.cudaSetDevice(before)
        self.address = pointer.value or 0
        if failed:
            raise MemoryError(f"{self.bytes} bytes on GPU {device}")

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        kinds = {
            "float32": "<f4",
            "float16": "<f2",
            "float64": "<f8",
            "int32": "<i4",
            "int64": "<i8",
            "uint8": "|u1",
        }
        return {
            "shape": self.shape,
            "typestr": kinds.get(self.dtype, "<V2"),
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def _dlpack_type(self) -> Tuple[str, Optional[int]]:
        return _SHORT.get(self.dtype, self.dtype), self.device

    def copy(self) -> "_DeviceArray":
        """A copy has its own memory: two objects with the same memory would free it twice."""
        other = _DeviceArray(self.shape, _SHORT.get(self.dtype, self.dtype), self.device)
        where = C.c_void_p(other.address), C.c_void_p(self.address)
        if self.handle.cudaMemcpy(*where, C.c_size_t(self.bytes), 3):
            raise Error("The array could not be copied on the GPU: cudaMemcpy failed.")
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> "_DeviceArray":
        return self.copy()

    def __del__(self) -> None:
        # while the interpreter shuts down, the module ctypes (C) may already be None
        if getattr(self, "address", 0) and C is not None:
            self.handle.cudaFree(C.c_void_p(self.address))


# --- arrays of any library: memory, shape, element type and contents ----------------------------------------


class _View(NamedTuple):
    """An array of any array library, such as torch, cupy or numpy."""

    # kind of an array on a GPU: "torch", "cupy" or "cuda" (another library); kind of an array in host memory:
    # "torch", "host" (an object with the buffer protocol) or "list"
    kind: str
    value: Any
    shape: Tuple[int, ...]
    dtype: str  # kbench's name of the element type (such as f32), or the array library's name if kbench has none
    contiguous: bool
    address: int
    device: Optional[int]  # number of the GPU that holds the array; None: the array is in host memory
    strides: Tuple[int, ...] = ()  # of each dimension, in elements; (): not known


_TYPESTR = {"f2": "f16", "f4": "f32", "f8": "f64", "i4": "i32", "i8": "i64"}
_FORMATS = {"f": "f32", "d": "f64", "e": "f16", "i": "i32", "q": "i64", "l": "i64"}


def _is_contiguous(shape: Sequence[int], strides: Optional[Sequence[int]], size: int) -> bool:
    for n, stride in zip(reversed(shape), reversed(strides or ())):
        if n != 1 and stride != size:
            return False
        size *= n
    return True


def _view(x: Any) -> Optional[_View]:
    """None: not an array."""
    if kbench._module_of(x) == "torch" and hasattr(x, "data_ptr"):
        name = str(x.dtype).replace("torch.", "")
        device = (x.device.index or 0) if x.is_cuda else None
        return _View(
            "torch", x, tuple(x.shape), _SHORT.get(name, name), x.is_contiguous(), x.data_ptr(), device, x.stride()
        )
    try:
        about = x.__cuda_array_interface__
    except (AttributeError, RuntimeError):
        about = None
    if about is not None:
        name = str(getattr(x, "dtype", about["typestr"]))
        dtype = _SHORT.get(name) or _TYPESTR.get(about["typestr"][1:], name)
        shape, strides = tuple(about["shape"]), about.get("strides")
        size = int(about["typestr"][2:])
        whole = _is_contiguous(shape, strides, size) or 0 in shape
        kind = "cupy" if kbench._module_of(x) == "cupy" else "cuda"
        device = getattr(x, "device", None)
        device = getattr(device, "id", device)
        if not isinstance(device, int):
            device = kbench._library().device()
        steps = tuple(n // size for n in strides or ())
        return _View(kind, x, shape, dtype, whole, about["data"][0] or 0, device, steps)
    if isinstance(x, (list, tuple, int, float)):
        return _View("list", x, _list_shape(x), "f64", True, 0, None)
    try:
        seen = memoryview(x)
    except TypeError:
        if hasattr(x, "astype") and hasattr(x, "shape"):  # a numpy array of ml_dtypes.bfloat16, which has no buffer
            return _View("host", x, tuple(x.shape), _SHORT.get(str(x.dtype), str(x.dtype)), True, 0, None)
        return _view_by_dlpack(x)
    dtype = _FORMATS.get(seen.format, seen.format)
    steps = tuple(n // seen.itemsize for n in seen.strides or ())
    return _View("host", x, tuple(seen.shape or ()), dtype, seen.c_contiguous, 0, None, steps)


def _view_by_dlpack(x: Any) -> Optional[_View]:
    lent = kbench._import_dlpack(x)
    if lent is None:
        return None
    capsule, tensor, dtype, device = lent
    shape, address = tuple(tensor.shape[: tensor.ndim]), (tensor.data or 0) + tensor.byte_offset
    strides = [tensor.bits // 8 * n for n in tensor.strides[: tensor.ndim]] if tensor.strides else None
    whole = _is_contiguous(shape, strides, tensor.bits // 8) or 0 in shape
    if device is not None:
        steps = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else ()
        return _View("cuda", (x, capsule), shape, dtype, whole, address, device, steps)
    # an array that is not contiguous gets size 0, and the caller rejects it
    size = math.prod(shape) * (tensor.bits // 8) if whole else 0
    block: Any = (C.c_ubyte * size).from_address(address) if size else (C.c_ubyte * 0)()
    block.owner = x, capsule
    form: Any = next((f for f, name in _FORMATS.items() if name == dtype and f != "e"), "B")
    return _View("host", memoryview(block).cast("B").cast(form), shape, dtype, whole, address, None)


def _list_shape(x: Any) -> Tuple[int, ...]:
    if not isinstance(x, (list, tuple)):
        return ()
    inner = {_list_shape(v) for v in x}
    if len(inner) > 1:
        raise Error("The rows of a list are of different lengths.")
    return (len(x), *(inner.pop() if inner else ()))


def _flat(x: Any) -> Iterator[float]:
    if isinstance(x, (list, tuple)):
        for v in x:
            yield from _flat(v)
    else:
        yield float(x)


def _nested(values: Sequence[float], shape: Sequence[int]) -> Any:
    if not shape:
        return values[0]
    if len(shape) == 1:
        return list(values)
    step = math.prod(shape[1:])
    return [_nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


Ranges = Sequence[Tuple[int, int]]  # (index of the first element, number of elements)


def _doubles(view: _View, ranges: Optional[Ranges]) -> Any:
    """ranges None: all elements."""
    x = view.value
    if kbench._module_of(x) in ("torch", "cupy"):
        x = x.detach().reshape(-1) if kbench._module_of(x) == "torch" else x.ravel()
        if ranges is not None:
            parts = [x[a : a + n] for a, n in ranges]
            x = sys.modules[kbench._module_of(x)].concatenate(parts) if len(parts) != 1 else parts[0]
        if kbench._module_of(x) == "torch":
            import torch

            x = x.cpu().to(torch.float64).contiguous()
            out = (C.c_double * x.numel())()
            C.memmove(out, x.data_ptr(), 8 * x.numel())
            return out
        x = x.get().astype("f8")
    elif view.kind == "cuda":
        return _widened(_bytes_of(view, ranges), view.dtype)
    elif isinstance(x, memoryview) and view.dtype in ("f16", "bf16"):
        return _widened(_bytes_of(view, ranges), view.dtype)
    elif hasattr(x, "astype"):
        x = x.astype("f8").ravel()
    if isinstance(x, (list, tuple, int, float)):
        flat: Any = array("d", _flat(x))
    else:
        seen = memoryview(x)
        plain = seen.cast("B").cast(seen.format) if seen.ndim != 1 else seen
        flat = plain if seen.format == "d" else array("d", (float(v) for v in plain))
    if ranges is not None and not (hasattr(view.value, "get")):
        flat = array("d", itertools.chain.from_iterable(flat[a : a + n] for a, n in ranges))
    out = (C.c_double * len(flat))()
    if len(flat):
        C.memmove(out, (C.c_char * (8 * len(flat))).from_buffer_copy(flat), 8 * len(flat))
    return out


def _widened(raw: bytes, dtype: str) -> Any:
    if dtype == "bf16":  # a bf16 is the upper half of an f32
        wide = bytearray(2 * len(raw))
        wide[2::4], wide[3::4] = raw[::2], raw[1::2]
        raw, dtype = bytes(wide), "f32"
    form = {"f16": "e", "f32": "f", "f64": "d", "i32": "i", "i64": "q"}.get(dtype)
    if not form:
        raise Error(f"kbench cannot read arrays of {dtype} from this library. Use arrays of torch or cupy.")
    return (C.c_double * (len(raw) // struct.calcsize(form)))(*(v for (v,) in struct.iter_unpack("<" + form, raw)))


def _bytes_of(view: _View, ranges: Optional[Ranges]) -> bytes:
    """ranges None: all elements."""
    size, x = _SIZES[view.dtype], view.value
    parts = [(0, math.prod(view.shape))] if ranges is None else ranges
    if view.kind == "torch":
        import torch

        flat = x.detach().reshape(-1)
        flat = torch.cat([flat[a : a + n] for a, n in parts]).cpu().contiguous()
        return C.string_at(flat.data_ptr(), size * flat.numel()) if flat.numel() else b""
    if view.kind == "cupy":
        return b"".join(x.ravel()[a : a + n].get().tobytes() for a, n in parts)
    if view.kind == "cuda":
        handle, out = kbench._library().handle, []
        for a, n in parts:
            piece = C.create_string_buffer(max(1, n * size))
            if handle.cudaMemcpy(piece, C.c_void_p(view.address + a * size), C.c_size_t(n * size), 2):
                raise Error("The array could not be copied from the GPU: cudaMemcpy failed.")
            out.append(piece.raw[: n * size])
        return b"".join(out)
    seen = memoryview(x).cast("B")
    return b"".join(bytes(seen[a * size : (a + n) * size]) for a, n in parts)


# --- signatures: inputs and outputs of an operation; * stands for any number of dimensions ------------------

Dims = Tuple[str, ...]


class _Signature(NamedTuple):
    text: str
    inputs: List[Tuple[str, Dims]]
    outputs: List[Tuple[str, Dims]]
    strided: List[bool]  # for all inputs, then all outputs: whether the tensor may have strides


def _parse(text: str) -> _Signature:
    def side(part: str) -> List[Tuple[str, Dims]]:
        return [
            (name, tuple(d for d in re.split("[,|]", dims) if d))
            for name, dims in re.findall(r"(\w+)\[([^]]*)\]", part)
        ]

    left, right = text.split("->")
    return _Signature(text, side(left), side(right), ["|" in dims for dims in re.findall(r"\[[^]]*\]", text)])


def _options(text: str) -> Dict[str, Any]:

    def value(word: str) -> Any:
        if word in ("True", "False", ""):
            return {"True": True, "False": False, "": None}[word]
        number = re.fullmatch(r"\d+(\.\d*)?", word)
        return (float(word) if number.group(1) else int(word)) if number else word

    return {name: value(word) for name, word in (pair.split("=") for pair in text.partition(";")[2].split())}


def _nearest(word: str, names: Iterable[str]) -> str:
    return difflib.get_close_matches(word, list(names), 1, 0)[0]


def _shape_text(shape: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


class _Fit(NamedTuple):
    """The inputs, shapes and options of a valid call of an operation."""

    shape: _Shape
    dtype: str
    views: List[_View]
    # key: letter of a dimension; value: size of the dimension. The letter "*" has a tuple of sizes as value.
    letters: Dict[str, Any]
    signature: _Signature
    tensors: List[_Tensor]
    options: Dict[str, Any]

    @property
    def elem(self) -> int:
        return _SIZES.get(self.dtype, 4)

    def output_shape(self, k: int) -> Tuple[int, ...]:
        shape: List[int] = []
        for d in self.signature.outputs[k][1]:
            shape += self.letters[d] if d == "*" else [int(d) if d.isdigit() else self.letters[d]]
        return tuple(shape)

    def output_dtype(self, k: int) -> str:
        return _KINDS[self.tensors[len(self.views) + k].kind] or self.dtype


class Operation:
    """An operation in one direction: kernels["softmax", "fwd"].

    The inputs of a call, in the order of .inputs, are torch tensors, cupy arrays or objects with
    __cuda_array_interface__ or DLPack. Methods that run on the CPU also accept numpy arrays, objects with the buffer
    protocol, and lists."""

    def __init__(self, operation: str, direction: str, infos: Sequence[_Row]) -> None:
        self.operation, self.direction = operation, direction
        self.formula: str = infos[0].formula.decode()
        self._text: str = infos[0].signature.decode()
        self._usual_sizes: str = infos[0].sizes.decode()
        self.family: str = _FAMILIES[infos[0].family]
        self.group: str = infos[0].group.decode()
        # names of the implementations in the order of their ladder, which begins with the slowest
        self.implementations: List[str] = [i.implementation.decode() for i in infos]
        self._row = _host().rows[(operation, direction, self.implementations[0])]
        self._rungs = {i.implementation.decode(): i.rung for i in infos}
        types = [t for k, t in enumerate(_DTYPES) if infos[0].dtypes >> k & 1]
        # element type of the arrays if the inputs of a call do not determine the element type
        self._usual = "f32" if "f32" in types or not types else types[0]

    @property
    def name(self) -> str:
        """Returns the operation and direction, for example "softmax_fwd"."""
        return f"{self.operation}_{self.direction}"

    @property
    def signature(self) -> str:
        """Returns the inputs and outputs with their shapes, for example "x[*,C] -> y[*,C]". The * stands for any
        number of dimensions. Dimensions before a bar may have strides, for example "A[M|K]"."""
        return self._parsed("nn").text

    @property
    def options(self) -> Dict[str, Any]:
        """Returns a dict that maps each keyword argument of the operation to its default value, or to None if the
        argument is required."""
        return _options(self._text)

    @property
    def inputs(self) -> List[str]:
        """Returns the names of the inputs, in the order in which a call takes the inputs."""
        return [name for name, _ in self._parsed("nn").inputs]

    @property
    def outputs(self) -> List[str]:
        """Returns the names of the outputs, in the order in which a call returns the outputs."""
        return [name for name, _ in self._parsed("nn").outputs]

    def _medium(self) -> Dict[str, int]:
        """Returns a dict that maps each axis to its value in the operation's size "medium". For an axis with
        several values, the dict holds the last value."""
        axes, _, values = self._usual_sizes.partition(":")
        sizes = re.search(r"medium ([\dx,]+)", values)
        last = [int(v.split(",")[-1]) for v in sizes.group(1).split("x")] if sizes else []
        return dict(zip(axes.split(" x "), last))

    def _parsed(self, layout: str) -> _Signature:
        text = self._text.partition(";")[0]
        if self.family == "gemm" and layout == "nt":
            text = text.replace("K|N]", "N|K]")
        if self.family == "gemm" and layout == "tn":
            text = text.replace("M|K]", "K|M]")
        return _parse(text)

    def __repr__(self) -> str:
        return f"kernels['{self.operation}', '{self.direction}']: {self.signature}: {self.formula}"

    # --- validation of the inputs

    def _chosen(self, options: Dict[str, Any]) -> Dict[str, Any]:
        known = self.options
        for word in options:
            if word not in known:
                knows = f"nearest is '{_nearest(word, known)}'" if known else "it has none"
                raise Error(f"{self.name} has no option '{word}'; {knows}.")
        chosen = {**known, **options}
        missing = [k for k, v in chosen.items() if v is None]
        if missing:
            raise Error(f"{self.name} needs {missing[0]}=, a number.")
        if chosen.get("layout", "nn") not in _LAYOUTS:
            raise Error(
                f"{self.name}: layout='{chosen['layout']}' is unknown. "
                "Valid values: nn, nt (B is N x K), tn (A is K x M)"
            )
        if not 0 <= chosen.get("p", 0) <= 1:
            raise Error(f"{self.name}: p={chosen['p']} is not a probability")
        for word in (*_SIZE_NAMES, "n"):
            if chosen.get(word, 1) < 1 or chosen.get(word, 1) != int(chosen.get(word, 1)):
                raise Error(f"{self.name}: {word}={chosen[word]} is not a whole number from 1 on")
        return chosen

    def _kinds(self) -> List[_Tensor]:
        """With all sizes 0, only the names and the element types are valid."""
        return self._tensors(_Shape())

    def _tensors(self, shape: _Shape) -> List[_Tensor]:
        t = (_Tensor * _MOST_TENSORS)()
        n = _host().kbk_row_tensors(self._row, C.byref(shape), t)
        return list(t[: max(0, n)])

    def _letters(self, signature: _Signature, views: Sequence[_View]) -> Dict[str, Any]:
        letters: Dict[str, Any] = {}
        for (name, dims), view in zip(signature.inputs, views):
            said = f"{self.name}: {name} has shape {_shape_text(view.shape)}, in {signature.text}"
            shape = list(view.shape)
            if "*" in dims:
                star = len(shape) - (len(dims) - 1)
                if star < 0:
                    raise Error(f"{said}: it has too few dimensions")
                sizes: List[Any] = [tuple(shape[:star]), *shape[star:]]
            elif not dims and math.prod(shape) == 1:
                continue  # a scalar input may have any shape with one element
            else:
                sizes = list(shape)
            if len(sizes) != len(dims):
                raise Error(f"{said}: it needs {len(dims)} dimensions, and has {len(shape)}")
            for d, size in zip(dims, sizes):
                if letters.setdefault(d, size) != size:
                    raise Error(f"{said}: {d} is {size} here, but {letters[d]} in an earlier input")
        return letters

    def _shape_of(self, letters: Dict[str, Any], options: Dict[str, Any]) -> _Shape:
        s = _Shape(batch=1, heads=1, rows=1, cols=1)
        used = {d for _, dims in self._parsed("nn").inputs + self._parsed("nn").outputs for d in dims}
        for letter in used & set(_LETTERS):
            setattr(s, _LETTERS[letter], letters[letter])
        # if the signature has a row length C, the dimensions "*" count rows; otherwise they count elements
        if "*" in used or not used:
            setattr(s, "rows" if "C" in used else "cols", math.prod(letters["*"]))
        s.stride = options.get("stride", 0)
        s.p, s.seed = options.get("p", 0.0), int(options.get("seed", 0)) & (2**64 - 1)
        s.causal = int(bool(options.get("causal", False)))
        usual = "nt" if "B[N,K]" in self._text else "nn"  # matmul_e4m3
        s.layout = _LAYOUTS.index(options.get("layout", usual)) if self.family == "gemm" else 0
        return s

    def _views(self, inputs: Sequence[Any], signature: _Signature) -> List[_View]:
        if len(inputs) != len(signature.inputs):
            raise Error(
                f"{self.name} takes {signature.text}: {len(signature.inputs)} inputs, not {len(inputs)}."
            )
        views = []
        for (name, _), x in zip(signature.inputs, inputs):
            view = _view(x)
            if view is None:
                raise Error(f"{self.name}: {name} is a {type(x).__name__}, which is no array.")
            views.append(view)
        return views

    def _dtype_from(
        self, views: Sequence[_View], kinds: Sequence[_Tensor], signature: _Signature, out: Any, host: bool
    ) -> str:
        """All inputs whose element type the operation does not fix must have the same element type. If the inputs do
        not determine the element type, it is the element type of the first array in `out`."""
        dtype, first = None, ""
        for (name, _), view, tensor in zip(signature.inputs, views, kinds):
            want = _KINDS[tensor.kind]
            if view.kind == "list" and str(want)[:1] == "i" and not all(v.is_integer() for v in _flat(view.value)):
                raise Error(f"{self.name}: {name} has to hold whole numbers.")
            if view.kind == "list" or (want and (host or view.dtype == want)):
                continue
            if want:
                cast = f"to(torch.{_LONG[want]})" if view.kind == "torch" else f"astype('{_LONG[want]}')"
                raise Error(f"{self.name}: {name} is {view.dtype}, and has to be {want}. Convert it: {name}.{cast}")
            if dtype is not None and view.dtype != dtype:
                raise Error(f"{self.name}: {name} is {view.dtype}, but {first} is {dtype}. Use one type for both.")
            dtype, first = view.dtype, name
        if dtype is None and out:
            seen = _view(out[0])
            dtype = seen.dtype if seen and _KINDS[kinds[len(views)].kind] is None else None
        return dtype or self._usual

    def _fit(
        self, inputs: Sequence[Any], options: Dict[str, Any], out: Sequence[Any] = (), host: bool = False
    ) -> _Fit:
        chosen = self._chosen(options)
        signature = self._parsed(chosen.get("layout", "nn"))
        views = self._views(inputs, signature)
        kinds = self._kinds()
        dtype = self._dtype_from(views, kinds, signature, out, host)
        if host and (any(v.kind == "list" for v in views) or dtype not in _SIZES):
            dtype = "f64"
        letters = self._letters(signature, views)
        if self.name == "strided_run":
            letters["N"] = letters["X"] // chosen["stride"]
            if letters["X"] != letters["N"] * chosen["stride"]:
                raise Error(
                    f"{self.name}: x has {letters['X']} elements, not a multiple of stride={chosen['stride']}"
                )
        for letter, size in _LETTERS.items():
            if size in chosen:
                letters.setdefault(letter, int(chosen[size]))
        if self.name == "alloc_run":
            letters["*"] = (int(chosen["n"]),)
        if self.name == "fill_run":
            seen = _view(out[0]) if out else None
            if not seen:
                raise Error(f"{self.name} needs out=, the array to fill.")
            letters["*"] = seen.shape
        if self.name == "null_run":
            letters["*"] = (1,)
        shape = self._shape_of(letters, chosen)
        for i, view in enumerate(views):
            _keep_strides(shape, signature, i, view)
        return _Fit(shape, dtype, views, letters, signature, self._tensors(shape), chosen)

    # --- formulas and oracle

    def bytes(self, *inputs: Any, **options: Any) -> float:
        """Returns the number of bytes that a call moves if the call reads each input and writes each output
        once."""
        fit = self._fit(inputs, options, host=True)
        return _host().kbk_row_bytes(self._row, C.byref(fit.shape), fit.elem)

    def flops(self, *inputs: Any, **options: Any) -> float:
        """Returns the number of floating-point operations of a call with the given inputs."""
        return _host().kbk_row_flops(self._row, C.byref(self._fit(inputs, options, host=True).shape))

    def oracle(self, *inputs: Any, **options: Any) -> Any:
        """Computes the outputs in double precision on the CPU. The outputs are float64 torch tensors, numpy arrays or
        nested lists, like the first input. Inputs on a GPU are copied to the host. Several outputs are returned as
        a named tuple."""
        fit = self._fit(inputs, options, host=True)
        _whole(self, fit)
        known = _OracleResult(self, fit, whole=True)
        results = []
        for k in range(len(fit.signature.outputs)):
            results.append(_like(fit, known.out[k], fit.output_shape(k)))
        return _bundle(self, results)

    def check(self, outputs: Any, *inputs: Any, **options: Any) -> None:
        """Raises AssertionError if outputs differ from the oracle's by more than the operation's tolerances. outputs:
        one array, or a tuple of all outputs in order. For large outputs, samples from the whole output are
        compared."""
        fit = self._fit(inputs, options, host=True)
        if fit.dtype not in _DTYPES:
            raise Error(
                f"{self.name}: there is no tolerance for inputs of {fit.dtype}. Use {', '.join(_DTYPES)}."
            )
        _whole(self, fit)
        names = [name for name, _ in fit.signature.outputs]
        one = not isinstance(outputs, tuple)
        passed, _, _, text = _OracleResult(self, fit).judge(dict(zip(names, (outputs,) if one else outputs)))
        if not passed:
            raise AssertionError(f"{self.name}: {text}")


def _keep_strides(shape: _Shape, signature: _Signature, tensor: int, view: _View) -> bool:
    """Stores the strides of a tensor in the shape. Returns whether a kernel can access the tensor: it is contiguous, or
    it may have strides, and its last dimension is contiguous."""
    if view.contiguous:
        return True
    if not signature.strided[tensor] or not view.strides or (view.strides[-1] != 1 and view.shape[-1] != 1):
        return False
    for d, (size, step) in enumerate(zip(view.shape[-2::-1], view.strides[-2::-1])):
        if size > 1:
            shape.strides[tensor][d] = step
            if step < 1:
                return False
    return True


def _whole(operation: Operation, fit: _Fit, launch: bool = False) -> None:
    for i, ((name, _), view) in enumerate(zip(fit.signature.inputs, fit.views)):
        readable = launch or kbench._module_of(view.value) in ("torch", "cupy", "numpy")
        if not (readable and _keep_strides(_Shape(), fit.signature, i, view) or view.contiguous):
            raise Error(f"{operation.name}: {name} is not contiguous. Pass {name}.contiguous(), or a copy.")


_tuples: Dict[str, Any] = {}


def _bundle(operation: Operation, values: Sequence[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    if operation.name not in _tuples:
        _tuples[operation.name] = namedtuple(operation.name, operation.outputs)
    return _tuples[operation.name](*values)


def _like(fit: _Fit, values: Any, shape: Tuple[int, ...]) -> Any:
    first = fit.views[0] if fit.views else None
    if first and kbench._module_of(first.value) == "torch":
        import torch

        return torch.tensor(list(values), dtype=torch.float64).reshape(shape)
    if first and kbench._module_of(first.value) in ("numpy", "cupy"):
        import numpy

        return numpy.array(values, dtype="f8").reshape(shape)
    return _nested(list(values), shape)


class _OracleResult:
    """Expected outputs: the oracle's values for samples from the whole result. The oracle computes the values once for
    all implementations of a comparison."""

    WORK = 1e8  # maximum number of operations of the oracle
    COMPARED = 1 << 19  # maximum number of compared elements
    RANGES = 64

    def __init__(self, operation: Operation, fit: _Fit, whole: bool = False) -> None:
        self.operation, self.fit, self.row = operation, fit, operation._row
        library, s = _host(), fit.shape
        self.units: int = library.kbk_row_units(self.row, C.byref(s))
        self.ranges = [(0, self.units)] if whole else self._choose()
        self.whole = self.ranges == [(0, self.units)]
        self.sampled = sum(n for _, n in self.ranges)
        n_in = len(fit.views)
        self.outputs = fit.tensors[n_in:]
        self.inputs = [
            _doubles(v, None if self.whole or not t.per_unit else self._elements(t.per_unit))
            for v, t in zip(fit.views, fit.tensors)
        ]
        self.out: List[Any] = []
        self.scales: List[Any] = []
        for t in self.outputs:
            units = self.sampled if t.per_unit else 1
            self.out.append((C.c_double * max(1, units * t.per_unit or t.count))())
            many = units * t.scales if t.per_unit else t.count
            self.scales.append((C.c_double * max(1, many))() if t.scales else None)
        at = 0
        for first, count in self.ranges:
            self._know(first, count, at)
            at += count

    def _elements(self, per_unit: int) -> Ranges:
        return [(a * per_unit, n * per_unit) for a, n in self.ranges]

    def _choose(self) -> Ranges:
        """All units if the oracle needs at most WORK operations, otherwise equally spaced ranges with the first and
        the last unit."""
        library, s = _host(), C.byref(self.fit.shape)
        piece = 4096 if self.operation.family in ("map", "pick") else 1
        work = library.kbk_row_flops(self.row, s) + library.kbk_row_bytes(self.row, s, self.fit.elem)
        outputs = sum(t.per_unit for t in self.fit.tensors if t.role != _IN)
        most = int(self.WORK / max(1.0, work / max(1, self.units))) + 2
        if outputs and most * outputs > self.COMPARED:
            most = self.COMPARED // outputs + 2
        if self.units <= most or self.units < 2 * piece:
            return [(0, self.units)]
        n = min(self.RANGES, max(2, most // piece))
        return [
            (self.units - piece if i == n - 1 else (self.units - piece) // (n - 1) * i, piece)
            for i in range(n)
        ]

    def _know(self, first: int, count: int, at: int) -> None:
        """The oracle indexes whole tensors, but the arrays hold only the sampled ranges: each pointer is shifted so
        that the oracle finds a unit at its place in the sampled array."""
        inputs = (C.c_void_p * _MOST_TENSORS)()
        outputs = (C.c_void_p * (2 * _MOST_OUTPUTS))()
        for i, (values, t) in enumerate(zip(self.inputs, self.fit.tensors)):
            shift = 0 if self.whole else (first - at) * t.per_unit
            inputs[i] = (C.addressof(values) - 8 * shift) & (2**64 - 1)
        for k, t in enumerate(self.outputs):
            if not t.per_unit and not self.whole:
                continue
            outputs[k] = C.addressof(self.out[k]) + 8 * at * t.per_unit
            if t.scales:
                outputs[_MOST_OUTPUTS + k] = C.addressof(self.scales[k]) + (
                    8 * at * t.scales if t.per_unit else 0
                )
        fit = self.fit
        why = _host().kbk_row_oracle(
            self.row, C.byref(fit.shape), fit.elem, inputs, outputs, first, first + count
        )
        if why:
            raise Error(f"{self.operation.name}: {why.decode()}")

    def judge(self, outputs: Dict[str, Any], norm: Optional[float] = None) -> Tuple[bool, float, float, str]:
        """Returns (whether the outputs passed, the error, the bound of the error, a message), like a check of
        kbench.compare. norm: for libraries that round intermediate results, a bound on ||got - want|| / ||want||
        that replaces the operation's own tolerances."""
        worst, allowed, looked = 0.0, math.nan, False
        names = [name for name, _ in self.fit.signature.outputs]
        pointers = (C.c_void_p * (2 * _MOST_OUTPUTS))()
        for k in range(len(names)):
            pointers[k] = C.addressof(self.out[k])
            if self.scales[k] is not None:
                pointers[_MOST_OUTPUTS + k] = C.addressof(self.scales[k])
        for k, (name, t) in enumerate(zip(names, self.outputs)):
            if outputs.get(name) is None or (not t.per_unit and not self.whole):
                continue  # an oracle of some rows cannot check outputs that sum over all rows, such as dw
            view = _view(outputs[name])
            want = self.fit.output_dtype(k)
            if view is None or view.dtype != want or math.prod(view.shape) != t.count:
                said = "no array" if view is None else f"{_shape_text(view.shape)} of {view.dtype}"
                text = f"{name} is {said}; it should be {_shape_text(self.fit.output_shape(k))} of {want}"
                return False, math.nan, math.nan, text
            got = _bytes_of(view, None if self.whole or not t.per_unit else self._elements(t.per_unit))
            report = _Report()
            good = _host().kbk_row_verify(
                self.row,
                _DTYPES.index(self.fit.dtype),
                C.byref(self.fit.shape),
                k,
                got,
                pointers,
                0,
                self.sampled,
                C.byref(report),
            )
            looked = True
            if norm is not None:
                good, report.norm_bound = report.norm <= norm, norm
            if not good or report.norm > worst or math.isnan(allowed):
                worst, allowed = report.norm, report.norm_bound
            if not good:
                why = (report.why or b"the relative error in the 2-norm exceeds its bound").decode()
                where = (
                    f"element {report.index} of the sample is {report.got:.9g}, expected {report.want:.9g}"
                )
                return False, worst, allowed, f"{name}: {why}; {where}"
        if not looked:
            return False, math.nan, math.nan, f"none of {', '.join(names)} was given"
        return True, worst, allowed, ""


# --- kernels ------------------------------------------------------------------------------------------------


class _Workspaces:
    """One block per GPU and stream, shared by all kernels on the stream. It is never freed, because a captured CUDA
    graph may refer to it."""

    def __init__(self) -> None:
        self.kept: Dict[Tuple[int, int], List[Tuple[int, int, Any]]] = {}

    def of(self, size: int, kind: str, device: int, stream: int) -> Tuple[int, Any]:
        """Returns the address of a workspace of at least `size` bytes, and the object that keeps this memory alive."""
        for have, address, owner in self.kept.setdefault((device, stream), []):
            if have >= size:
                return address, owner
        address, owner = self.new(size, kind, device, stream)
        self.kept[(device, stream)].append((size, address, owner))
        self.kept[(device, stream)].sort(key=lambda e: e[0])
        return address, owner

    def new(self, size: int, kind: str, device: int, stream: int) -> Tuple[int, Any]:
        if kind == "torch":
            import torch

            owner: Any = torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")
            owner[:_TICKETS].zero_()
            current = torch.cuda.current_stream(device)
            if current.cuda_stream != stream:
                current.synchronize()
            return owner.data_ptr(), owner
        owner = _DeviceArray((size,), "uint8", device)
        if owner.handle.cudaMemset(C.c_void_p(owner.address), 0, C.c_size_t(min(size, _TICKETS))):
            raise Error("The workspace could not be cleared: cudaMemset failed.")
        owner.handle.cudaDeviceSynchronize()
        return owner.address, owner


_workspaces = _Workspaces()


def _current_stream(kind: str, device: int) -> int:
    if kind == "torch":
        import torch

        return torch.cuda.current_stream(device).cuda_stream
    if kind == "cupy":
        import cupy

        with cupy.cuda.Device(device):
            return cupy.cuda.get_current_stream().ptr
    return 0


def _empty(kind: str, shape: Sequence[int], dtype: str, device: Optional[int], pinned: bool = False) -> Any:
    if kind == "torch":
        import torch

        where: Dict[str, Any] = {"pin_memory": pinned} if device is None else {"device": f"cuda:{device}"}
        return torch.empty(tuple(shape), dtype=getattr(torch, _LONG[dtype]), **where)
    if kind == "cupy":
        import cupy

        if dtype == "bf16":
            raise Error("cupy has no bf16. Use torch, or pass out=.")
        with cupy.cuda.Device(device):
            return cupy.empty(tuple(shape), _LONG[dtype])
    return _DeviceArray(shape, dtype, device or 0)


class Launch:
    """A kernel with its inputs, outputs and scratch memory. Calling a Launch only launches the kernel and returns
    .outputs, which each call overwrites. stream: a cudaStream_t as a number; by default the current stream of
    torch or cupy."""

    def __init__(
        self,
        kernel: "Kernel",
        library: _Library,
        args: _Args,
        fit: _Fit,
        kind: str,
        device: int,
        outputs: Sequence[Any],
        keep: Any,
    ) -> None:
        self.kernel, self.device, self.__name__ = kernel, device, kernel.__name__
        self.outputs = None if not outputs else _bundle(kernel, outputs)
        self._row = library.rows[(kernel.operation, kernel.direction, kernel.implementation)]
        self._launch, self._args, self._fit, self._kind, self._keep = (
            library.kbk_row_launch,
            args,
            fit,
            kind,
            keep,
        )
        self._dtype = _DTYPES.index(fit.dtype)

    def why_not(self, stream: Optional[int] = None) -> Optional[str]:
        """Launches the kernel. Returns None, or the reason if the kernel could not be launched."""
        at = _current_stream(self._kind, self.device) if stream is None else stream
        why = self._launch(self._row, self._dtype, C.byref(self._args), self.device, at)
        return why.decode() if why else None

    def __call__(self, stream: Optional[int] = None) -> Any:
        why = self.why_not(stream)
        if why:
            raise Error(f"{self.kernel.name} {self.kernel.implementation}: {why}")
        return self.outputs


class Kernel(Operation):
    """One implementation: kernels["softmax", "fwd", "onepass"]. Calling a Kernel with arrays on a GPU launches the
    kernel."""

    def __init__(self, operation: str, direction: str, infos: Sequence[_Row], info: _Row) -> None:
        super().__init__(operation, direction, infos)
        self.implementation: str = info.implementation.decode()
        self.__name__ = f"{self.name}_{self.implementation}"  # the name in records of kbench.time
        # not the operation's row: this implementation's row in the kernel table may have tolerances of its own
        self._row = _host().rows[(operation, direction, self.implementation)]
        self.note: str = info.note.decode()
        self.rung: int = info.rung
        self.dtypes: List[str] = [t for i, t in enumerate(_DTYPES) if info.dtypes >> i & 1]
        self.sm: int = info.sm  # smallest compute capability on which the kernel runs (90 for 9.0); 0: any
        self.exact: bool = bool(info.exact)  # the kernel runs only on compute capability sm, not on later ones
        self.vendor: bool = bool(info.origin & _VENDOR)
        self.unordered: bool = bool(info.origin & _UNORDERED)  # the kernel uses atomic additions in an undefined order
        self.tf32: bool = bool(info.origin & _TF32)  # the kernel uses only 10 of the 23 mantissa bits of f32
        self._origin: int = info.origin

    def __repr__(self) -> str:
        needs = (
            f", compute capability {self.sm // 10}.{self.sm % 10}{' only' if self.exact else ''}"
            if self.sm
            else ""
        )
        return (
            f"kernels['{self.operation}', '{self.direction}', '{self.implementation}']: {self.signature}"
            f" in {', '.join(self.dtypes)}{needs}: {self.note}"
        )

    def runs_on(self, capability: int) -> bool:
        """Returns whether the kernel runs on the given compute capability (90 for 9.0)."""
        return capability == self.sm if self.exact else capability >= self.sm

    def scratch(self, *inputs: Any, **options: Any) -> int:
        """Returns the bytes of scratch memory that a call with the given inputs uses."""
        return self._scratch(self._fit(inputs, options, host=True))

    def _scratch(self, fit: _Fit) -> int:
        return _host().kbk_row_workspace(self._row, C.byref(fit.shape), fit.elem)

    def _home(self, fit: _Fit, out: Sequence[Any]) -> Tuple[str, int]:
        """Returns the library that allocates the outputs ("torch", "cupy" or "cuda") and the GPU."""
        kind, device = None, None
        here = [(n, v, t.place) for (n, _), v, t in zip(fit.signature.inputs, fit.views, fit.tensors)]
        for (name, _), x, t in zip(fit.signature.outputs, out, fit.tensors[len(fit.views) :]):
            if x is None and t.optional:
                continue
            view = _view(x)
            if view is None:
                raise Error(f"{self.name}: {name} in out= is a {type(x).__name__}, which is no array.")
            here.append((name, view, t.place))
        for name, view, place in here:
            if place and view.device is not None:
                raise Error(f"{self.name}: {name} is on a GPU, but must be on the host. Pass {name}.cpu().")
            if not place and view.device is None:
                raise Error(
                    f"{self.name}: {name} is on the host. Move it to the GPU ({name}.cuda()), or call the oracle: "
                    f"kernels['{self.operation}', '{self.direction}'].oracle(...)"
                )
            if device is not None and view.device is not None and view.device != device[1]:
                raise Error(f"{self.name}: {name} is on GPU {view.device}, but {device[0]} is on GPU {device[1]}.")
            if view.device is not None:
                device = (name, view.device)
            kind = kind or (view.kind if view.kind in ("torch", "cupy", "cuda") else None)
        if kind is None:
            kind = "torch" if "torch" in sys.modules else "cuda"
        return kind, kbench._library().device() if device is None else device[1]

    def _outputs(self, fit: _Fit, out: Sequence[Any], kind: str, device: int) -> List[Any]:
        """The validated arrays in `out`, or new arrays."""
        names = [name for name, _ in fit.signature.outputs]
        if self._origin & _ALLOCATES or self.name == "null_run":
            return []
        if not out:
            values = []
            for k, t in enumerate(fit.tensors[len(fit.views) :]):
                if t.place and kind != "torch":
                    raise Error(f"{self.name}: torch allocates its output in host memory. Import torch, or pass out=.")
                where, pinned = (None, not self._origin & _PAGEABLE) if t.place else (device, False)
                values.append(_empty(kind, fit.output_shape(k), fit.output_dtype(k), where, pinned))
            return values
        if len(out) != len(names):
            raise Error(f"{self.name}: out= has {len(out)} arrays; it needs {', '.join(names)}.")
        for k, x in enumerate(out):
            if x is None and fit.tensors[len(fit.views) + k].optional:
                continue
            view = _view(x)
            shape, dtype = fit.output_shape(k), fit.output_dtype(k)
            good = view is not None and view.shape == shape and view.dtype == dtype
            if not good or not _keep_strides(fit.shape, fit.signature, len(fit.views) + k, view):
                raise Error(
                    f"{self.name}: {names[k]} in out= has to be {_shape_text(shape)} of {dtype}, contiguous"
                    + ("" if view is None else f"; it is {_shape_text(view.shape)} of {view.dtype}")
                )
        return list(out)

    def _require_dtype(self, fit: _Fit) -> None:
        if fit.dtype not in self.dtypes:
            others = ", ".join(
                k.implementation for k in kernels if k.name == self.name and fit.dtype in k.dtypes
            )
            raise Error(
                f"{self.name} {self.implementation} takes {', '.join(self.dtypes)}, not {fit.dtype}"
                + (f". Implementations for {fit.dtype}: {others}" if others else "")
            )
        _whole(self, fit, launch=True)
        if self.name in ("h2d_run", "d2h_run") and any(v.kind != "torch" for v in fit.views):
            raise Error(
                f"{self.name} takes only torch tensors, because only they tell whether host memory is pinned."
            )

    def bind(self, *inputs: Any, out: Any = None, stream: Optional[int] = None, **options: Any) -> Launch:
        """Prepares a launch of the kernel that can be repeated. The launch reads the arrays passed as inputs and
        owns its scratch memory. The launch writes to the arrays in `out`, or to new arrays that it owns."""
        given = () if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
        fit = self._fit(inputs, options, given)
        self._require_dtype(fit)
        kind, device = self._home(fit, given)
        return self._bound(
            fit, self._ready(fit, device), kind, device, self._outputs(fit, given, kind, device), stream
        )

    def _ready(self, fit: _Fit, device: int) -> _Library:
        """Returns the shared library that contains this kernel, built for the given GPU. Raises Error if the
        kernel cannot run on the GPU."""
        _need_gpu()
        if not self.runs_on(_capability(device)):
            need, have = (f"{c // 10}.{c % 10}" for c in (self.sm, _capability(device)))
            need += " exactly" * self.exact
            fine = [
                k.implementation for k in kernels if k.name == self.name and k.runs_on(_capability(device))
            ]
            raise Error(
                f"{self.name} {self.implementation} needs compute capability {need}, "
                f"but GPU {device} has {have}. Implementations that run on it are {', '.join(fine)}."
            )
        library = _device(self.group, fit.dtype, _arch_of(device))
        if (self.operation, self.direction, self.implementation) not in library.rows:
            raise Error(f"{library.path} was built without {self.name} {self.implementation}")
        return library

    def _bound(
        self,
        fit: _Fit,
        library: _Library,
        kind: str,
        device: int,
        outputs: Sequence[Any],
        stream: Optional[int],
        own_workspace: bool = True,
    ) -> Launch:
        args, keep = _Args(s=fit.shape, scalar=fit.options.get("scale", 0.0)), [fit.views]
        for i, view in enumerate(fit.views):
            args.inputs[i] = view.address
        for k, x in enumerate(outputs):
            seen = None if x is None else _view(x)
            args.outputs[k] = seen.address if seen else None
        size = self._scratch(fit)
        if size:
            at = _current_stream(kind, device) if stream is None else stream
            make = _workspaces.new if own_workspace else _workspaces.of
            args.workspace, owner = make(size, kind, device, at)
            args.workspace_bytes = size
            keep.append(owner)
        return Launch(self, library, args, fit, kind, device, outputs, keep)

    def _once(self, inputs: Sequence[Any], out: Any, stream: Optional[int], options: Dict[str, Any]) -> Any:
        given = () if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
        fit = self._fit(inputs, options, given)
        self._require_dtype(fit)
        kind, device = self._home(fit, given)
        library, outputs = self._ready(fit, device), self._outputs(fit, given, kind, device)
        return self._bound(fit, library, kind, device, outputs, stream, own_workspace=False)(stream)

    def __call__(
        self,
        *inputs: Any,
        out: Any = None,
        stream: Optional[int] = None,
        backward: Optional[str] = None,
        **options: Any,
    ) -> Any:
        """Launches the kernel and returns the output array without waiting for the GPU. Several outputs are
        returned as a named tuple (y, mean, rstd = ...). If the inputs are arrays of torch or cupy, the same
        library allocates the outputs; otherwise kbench allocates them.

        out: arrays that receive the outputs; None in place of an output that is not needed, such as mean and rstd
        of layernorm in inference. stream: a cudaStream_t as a number; by default the current stream of torch or
        cupy, otherwise the default stream. options: keyword arguments of the operation, as listed in the attribute
        .options.
        backward: name of the backward implementation, used if torch tracks gradients of an input. By default, the
            backward implementation has the name of the forward implementation; if no backward implementation has
            this name, the highest rung that runs is used.

        Raises Error if the inputs have wrong shapes or types, or if the kernel cannot be built or launched.
"""
        if any(kbench._module_of(x) == "torch" and getattr(x, "requires_grad", False) for x in inputs):
            import torch

            if torch.is_grad_enabled():
                return _differentiable(self, inputs, out, stream, backward, options)
        if backward is not None:
            raise Error(f"{self.name}: backward='{backward}' was given, but no input requires a gradient.")
        return self._once(inputs, out, stream, options)


# --- gradients ----------------------------------------------------------------------------------------------


def _gradients_of(kernel: Kernel, named: Optional[str]) -> List[Kernel]:
    if kernel.operation in ("matmul", "bmm"):
        return [kernel]
    found = [k for k in kernels if k.operation == kernel.operation and k.direction == "bwd"]
    if kernel.direction != "fwd" or not found:
        raise Error(
            f"{kernel.name} has no backward kernel. Call it under torch.no_grad(), or with detached inputs."
        )
    if named is not None:
        return [kernels[kernel.operation, "bwd", named]]
    return sorted(found, key=lambda k: (k.implementation != kernel.implementation, k.vendor, -k.rung))


def _differentiable(
    kernel: Kernel,
    inputs: Sequence[Any],
    out: Any,
    stream: Optional[int],
    backward: Optional[str],
    options: Dict[str, Any],
) -> Any:
    if out is not None or stream is not None:
        raise Error(f"{kernel.name}: out= and stream= do not support gradients. Call it under torch.no_grad().")
    backwards = _gradients_of(kernel, backward)
    plan = {"kernel": kernel, "backwards": backwards, "options": options}
    return _bundle(kernel, _function().apply(plan, *inputs))


_made_function: Any = None


def _function() -> Any:
    """Created on first use, so that this module can be imported without torch."""
    global _made_function
    if _made_function is not None:
        return _made_function
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, plan: Dict[str, Any], *inputs: Any) -> Any:
            kernel = plan["kernel"]
            outputs = kernel._once([x.detach() for x in inputs], None, None, plan["options"])
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            ctx.plan = plan
            ctx.save_for_backward(*inputs, *outputs)
            # the outputs after the first are statistics, such as mean and rstd, and have no gradients
            ctx.mark_non_differentiable(*outputs[1:])
            return tuple(outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            kernel = ctx.plan["kernel"]
            n = len(kernel.inputs)
            names = dict(zip(kernel.inputs + kernel.outputs, ctx.saved_tensors))
            gradients = _backward(ctx.plan, names, grads[0])
            wanted = ctx.needs_input_grad[1 : n + 1]
            return (None, *(gradients.get(x) if want else None for x, want in zip(kernel.inputs, wanted)))

    _made_function = Function
    return Function


def _first_that_runs(
    ladder: Sequence[Kernel], inputs: Sequence[Any], options: Dict[str, Any]
) -> Dict[str, Any]:
    """Not every kernel supports every shape, so the first kernel in `ladder` that accepts the inputs runs. If no
    kernel runs, raises the Error of the ladder's first kernel."""
    error: Optional[Error] = None
    for kernel in ladder:
        try:
            outputs = kernel._once(inputs, None, None, options)
        except Error as e:
            error = error or e
            continue
        return dict(zip(kernel.outputs, outputs if isinstance(outputs, tuple) else (outputs,)))
    raise error or Error("No kernel of the operation supports the element type of the inputs.")


def _backward(plan: Dict[str, Any], names: Dict[str, Any], dy: Any) -> Dict[str, Any]:
    kernel, options = plan["kernel"], plan["options"]
    dy = dy.detach()
    if kernel.family == "gemm":
        return _product_gradients(kernel, names, dy.contiguous(), options.get("layout", "nn"))
    values, scale = dict(names), None
    values["d" + kernel.outputs[0]] = dy.contiguous()
    if kernel.operation == "mse":
        values["g"] = dy.float().reshape(1)
    if (
        kernel.operation == "cross_entropy"
    ):  # the kernel takes one gradient g for all rows, as .sum() and .mean() of the loss produce
        same = all(stride == 0 or n == 1 for stride, n in zip(dy.stride(), dy.shape)) and dy.numel() > 0
        values["g"] = dy.reshape(-1)[:1].float() if same else dy.new_ones(1)
        scale = None if same else dy.unsqueeze(-1)
    takes = dict(options)
    if kernel.operation == "embedding":
        takes["vocabulary"] = names["W"].shape[0]
    first = plan["backwards"][0]
    found = _first_that_runs(plan["backwards"], [values[x].detach() for x in first.inputs], takes)
    gradients = {name[1:]: value for name, value in found.items()}
    if scale is not None:
        gradients["x"] = (gradients["x"].float() * scale).to(gradients["x"].dtype)
    if kernel.operation == "mse":
        gradients["y"] = -gradients["x"]
    return gradients


def _product_gradients(kernel: Kernel, names: Dict[str, Any], dc: Any, layout: str) -> Dict[str, Any]:
    """Returns the gradients of C = A B, which are matrix products as well: dA = dC B', dB = A' dC, in the storage
    order of the layout."""
    a, b = names["A"].detach(), names["B"].detach()
    first, second = {
        "nn": ((dc, b, "nt"), (a, dc, "tn")),
        "nt": ((dc, b, "nn"), (dc, a, "tn")),
        "tn": ((b, dc, "nt"), (a, dc, "nn")),
    }[layout]
    return {
        "A": kernel._once(first[:2], None, None, {"layout": first[2]}),
        "B": kernel._once(second[:2], None, None, {"layout": second[2]}),
    }


# --- the table ----------------------------------------------------------------------------------------------


class Kernels:
    """The table of all kernels of kbench_kernels.cuh. kernels[operation, direction, implementation] is a Kernel,
    and kernels[operation, direction] is the Operation. Iterating over `kernels` yields every Kernel, in the order
    of the kernel table."""

    def __init__(self) -> None:
        self._made: Dict[str, Dict[Tuple[str, ...], Any]] = {}

    def _all(self) -> Dict[Tuple[str, ...], Any]:
        """Returns a dict. The key of an Operation is (operation, direction); the key of a Kernel is (operation,
        direction, implementation)."""
        library = _host()
        if library.path not in self._made:
            made: Dict[Tuple[str, ...], Any] = {}
            groups: Dict[Tuple[str, str], List[_Row]] = {}
            for i in library.infos:
                groups.setdefault((i.operation.decode(), i.direction.decode()), []).append(i)
            for (operation, direction), infos in groups.items():
                made[operation, direction] = Operation(operation, direction, infos)
            for i in library.infos:
                key = (i.operation.decode(), i.direction.decode())
                made[(*key, i.implementation.decode())] = Kernel(*key, groups[key], i)
            self._made[library.path] = made
        return self._made[library.path]

    def __iter__(self) -> Iterator[Kernel]:
        return (k for k in self._all().values() if isinstance(k, Kernel))

    def __len__(self) -> int:
        return len(_host().infos)

    def __getitem__(self, key: Union[str, Tuple[str, ...]]) -> Any:
        words = key if isinstance(key, tuple) else (key,)
        if not 1 <= len(words) <= 3 or not all(isinstance(w, str) for w in words):
            raise Error("kernels[...] takes operation, direction, implementation: kernels['softmax', 'fwd', 'onepass']")
        everything = self._all()
        if words in everything:
            return everything[words]
        known = [k for k in everything if len(k) == 2]
        operations = list(dict.fromkeys(o for o, _ in known))
        if words[0] not in operations:
            nearest = _nearest(words[0], operations)
            raise Error(f"unknown operation '{words[0]}'; nearest is '{nearest}' (kernels.table() lists all)")
        if len(words) < 2 or words[:2] not in everything:
            said = f"has no direction '{words[1]}'" if len(words) > 1 else "needs a direction"
            raise Error(f"{words[0]} {said}: it has {', '.join(d for o, d in known if o == words[0])}")
        names = everything[words[:2]].implementations
        raise Error(
            f"{words[0]} {words[1]} has no implementation '{words[2]}'; nearest is "
            f"'{_nearest(words[2], names)}' (there are {', '.join(names)})"
        )

    def operations(self) -> List[Operation]:
        """Returns one Operation for each operation and direction."""
        return [o for o in self._all().values() if not isinstance(o, Kernel)]

    def rows(self) -> List[Dict[str, Any]]:
        """Returns the table of kernels as a list of dicts, one per kernel. The keys are operation, direction,
        implementation, rung, dtypes, sm (smallest compute capability, 90 for 9.0), exact, alignment (in bytes, by
        element type), vendor, unordered, tf32, formula and note. All keys of the dict except "alignment" are also
        attributes of the Kernel."""
        return [
            {
                "operation": k.operation,
                "direction": k.direction,
                "implementation": k.implementation,
                "rung": k.rung,
                "dtypes": k.dtypes,
                "sm": k.sm,
                "exact": k.exact,
                "alignment": {t: i.alignment[_DTYPES.index(t)] for t in k.dtypes},
                "vendor": k.vendor,
                "unordered": k.unordered,
                "tf32": k.tf32,
                "formula": k.formula,
                "note": k.note,
            }
            for k, i in zip(self, _host().infos)
        ]

    def table(self) -> None:
        """Prints one line per operation and direction: inputs and outputs, element types, implementations."""
        for o in self.operations():
            types = [t for t in _DTYPES if any(t in k.dtypes for k in self if k.name == o.name)]
            words = [
                f"{o.operation} {o.direction}",
                o.signature,
                " ".join(types),
                " ".join(o.implementations),
            ]
            print("  ".join(words))

    def build(
        self,
        operations: Optional[Sequence[str]] = None,
        dtypes: Optional[Sequence[str]] = None,
        arch: Optional[str] = None,
    ) -> List[str]:
        """Builds kernels now, with as many compilers in parallel as there are processors. Returns the paths of the
        shared libraries that hold the kernels.

        operations: names of operations; dtypes: element types; by default all. arch: GPU architecture, for example
        "sm_90a"; by default that of the current GPU."""
        groups = dict.fromkeys(o.group for o in self._asked(operations))
        if arch is None:
            _need_gpu()
            arch = _arch_of(kbench._library().device())
        jobs = []
        for group in groups:
            has = {t for k in self if k.group == group for t in k.dtypes}
            jobs += [(group, t, arch) for t in (dtypes or _DTYPES) if t in has]
        unknown = [t for t in dtypes or () if t not in _DTYPES]
        if unknown:
            raise Error(f"unknown element type '{unknown[0]}'; there are {', '.join(_DTYPES)}")
        with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
            return [library.path for library in pool.map(lambda job: _device(*job), jobs)]

    def _asked(self, operations: Optional[Sequence[str]]) -> List[Operation]:
        all_of_them = self.operations()
        words = [operations] if isinstance(operations, str) else operations
        if words is None:
            return all_of_them
        names = {o.operation for o in all_of_them}
        for word in words:
            if word not in names:
                nearest = _nearest(word, names)
                raise Error(f"unknown operation '{word}'; nearest is '{nearest}' (kernels.table() lists all)")
        return [o for o in all_of_them if o.operation in words]

    def suite(
        self,
        operations: Optional[Sequence[str]] = None,
        peers: Sequence[str] = ("torch", "compile", "triton", "cudnn", "fa2", "cupy"),
        shapes: Any = None,
        dtypes: Optional[Sequence[str]] = None,
        implementations: Optional[Sequence[str]] = None,
        directions: Optional[Sequence[str]] = None,
        sizes: str = "usual",
        max_time: float = 0.3,
        precision: Optional[float] = None,
        seed: int = 42,
        progress: bool = True,
        keep: Optional[Callable[["Comparisons"], None]] = None,
    ) -> "Comparisons":
        """Compares the kernels of kbench with PyTorch, Triton and other libraries (peers). All implementations of
        an operation get the same inputs, are checked with the same oracle, and run in interleaved rounds with a
        cold L2 cache. Needs a GPU and PyTorch. Returns the records.

        operations: names of operations; by default the operations of the standard comparison.
        peers: of "torch", "compile" (torch.compile), "triton", "cudnn", "fa2" (FlashAttention 2), "cupy". Peers that
            are not installed are listed in .missing, and on stderr.
        shapes: a dict, or a list of dicts, with batch_size, sequence_length, tensor_dimension and other axes of the
            operation (vocabulary, heads, causal, n, stride, among, layout). Replaces sizes.
        dtypes: any of "f32", "f16", "bf16"; by default the element types of each operation's standard comparison.
        implementations: by default all except the first (slowest) rungs of each ladder.
        directions: any of "fwd", "bwd", "fwdbwd", "run"; by default all.
        sizes: "usual": large shapes; "small": tensors that stay in the L2 cache, launched as CUDA graphs
            (mode="graph" of kbench.compare); "compiled": the shapes for the comparison with torch.compile.
        max_time, precision, seed: the arguments of kbench.compare with the same names.
        progress: print a line per comparison to stderr.
        keep: a function that is called after each comparison with all records so far, for example to save them.
        """
        if isinstance(peers, str):
            peers = [peers]
        for peer in peers:
            if peer not in _PEERS:
                raise Error(f"unknown peer '{peer}'; nearest is '{_nearest(peer, _PEERS)}'.")
        unknown = [t for t in dtypes or () if t not in _DTYPES]
        if unknown:
            raise Error(f"unknown element type '{unknown[0]}'; there are {', '.join(_DTYPES)}")
        asked = {o.operation for o in self._asked(operations)}
        for word in directions or ():
            if not any(o.operation in asked and o.direction == word for o in self.operations()):
                raise Error(f"none of the requested operations has a direction '{word}'")
        names = dict.fromkeys(k.implementation for k in self if k.operation in asked)
        for word in implementations or ():
            if word not in names:
                nearest = _nearest(word, names)
                raise Error(
                    f"none of the requested operations has an implementation '{word}'; nearest is '{nearest}'"
                )
        plan = _plan(asked if operations is not None else None, shapes, dtypes, sizes)
        _need_gpu()
        if not _installed("torch"):
            raise Error(
                "kernels.suite needs PyTorch, which is not installed, for its inputs and most peers: pip install torch"
            )
        device = kbench._library().device()
        for dtype in dict.fromkeys(d for _, d, _ in plan):
            self.build(list(dict.fromkeys(o for o, d, _ in plan if d == dtype)), [dtype], _arch_of(device))
        out = Comparisons()
        present, stream = out._find_peers(peers, progress), _engine_stream(device)
        for name, dtype, axes in plan:
            for operation in self.operations():
                if operation.operation != name or (directions and operation.direction not in directions):
                    continue
                if shapes is None and sizes != "usual" and not _is_of(sizes, name, operation.direction, dtype, axes):
                    continue
                try:
                    comparison = _Comparison(operation, dtype, axes, seed, device, stream)
                    comparison.mode = "graph" if sizes == "small" else None
                    out += comparison.run(present, implementations, max_time, precision, out.missing)
                # after an error, such as too little memory, the next comparison runs
                except (RuntimeError, MemoryError) as error:
                    first = (str(error).splitlines() or [type(error).__name__])[0][:160]
                    out.missing.append((f"{operation.name} {dtype} {axes}", first))
                if progress:
                    print(f"{operation.name} {dtype} {axes}: {len(out)} records", file=sys.stderr, flush=True)
                if keep:
                    keep(out)
        return out


kernels = Kernels()


# --- the suite: operations, element types and shapes --------------------------------------------------------


def _axes(b: int, s: int, d: int, **more: Any) -> Dict[str, Any]:
    return {"batch_size": b, "sequence_length": s, "tensor_dimension": d, **more}


_ROWS = "softmax,layernorm,rmsnorm"
_RUNS: List[Tuple[str, str, Dict[str, Any]]] = [
    ("copy,fill,read,triad", "f32", {"n": 1 << 28}),
    # copy kernels of several sizes, timed only to compute the column "of a copy"
    *[("copy", "f32", {"n": 1 << i}) for i in (20, 21, 22, 23, 24, 25, 26)],
    ("add,relu,gelu_erf,gelu_tanh,silu,dropout,mse", "f32,bf16", _axes(16, 2048, 4096)),
    ("sum", "f32", _axes(32, 2048, 4096)),
    ("weighted_sum", "f32", _axes(32, 2048, 4096)),
    (_ROWS, "f32,bf16", _axes(8, 1024, 4096)),
    (_ROWS, "bf16", _axes(8, 1024, 1024)),
    (_ROWS, "bf16", _axes(64, 1024, 64)),
    (_ROWS, "bf16", _axes(4, 1024, 16384)),
    ("softmax", "bf16", _axes(4, 1024, 32768)),
    ("softmax", "f32", _axes(1, 512, 131072)),
    ("cross_entropy", "bf16", _axes(8, 1024, 50304)),
    ("cross_entropy", "bf16", _axes(4, 1024, 131072)),
    ("embedding", "f32", _axes(16, 1024, 768, vocabulary=50304)),
    ("embedding", "bf16", _axes(16, 1024, 4096, vocabulary=131072)),
    ("transpose", "f32,bf16", _axes(16, 1024, 8192)),
    ("matmul", "f32,bf16", _axes(2, 1024, 2048)),
    ("matmul", "f32,bf16", _axes(4, 1024, 4096)),
    ("matmul", "bf16", _axes(8, 1024, 8192)),
    *[("attention", "bf16", _axes(4, 4096, 128, heads=16, causal=causal)) for causal in (0, 1)],
    *[("attention", "bf16", _axes(4, 4096, 64, heads=32, causal=causal)) for causal in (0, 1)],
    *[("attention", "bf16", _axes(16, 3072, 128, heads=16, causal=causal)) for causal in (0, 1)],
    *[("attention", "bf16", _axes(16, 1024, 128, heads=16, causal=causal)) for causal in (0, 1)],
    ("attention", "bf16", _axes(1, 16384, 128, heads=16, causal=1)),
]
# comparisons in f16, which run only if the caller selects no element types
_ALSO: List[Tuple[str, str, Dict[str, Any]]] = [
    ("attention", "f16", _axes(4, 4096, 128, heads=16, causal=1)),
]
# comparisons that run only if the caller names their operations
_OTHERS: List[Tuple[str, str, Dict[str, Any]]] = [
    ("mul,div", "f32,bf16", _axes(16, 2048, 4096)),
    ("bmm", "f32,bf16", _axes(64, 256, 256)),
    ("strided", "f32", {"n": 1 << 23, "stride": 2}),
    ("gather", "f32", {"n": 1 << 25, "among": 1 << 22}),
]
_SMALL: List[Tuple[str, str, Dict[str, Any]]] = [  # each comparison uses at most 16 MiB
    ("copy,fill,read,triad", "f32", {"n": 1 << 21}),
    ("add,relu,gelu_erf,gelu_tanh,silu,mse", "f32,bf16", _axes(1, 1024, 1024)),
    ("sum", "f32", _axes(1, 1024, 1024)),
    ("weighted_sum", "f32", _axes(1, 512, 1024)),
    (_ROWS, "f32,bf16", _axes(1, 512, 1024)),
    ("cross_entropy", "bf16", _axes(1, 512, 1024)),
    # embedding_bwd is left out: its gradient is as large as the embedding table, which exceeds 16 MiB
    ("embedding_fwd", "f32", _axes(1, 512, 768, vocabulary=50257)),
    ("transpose", "f32,bf16", _axes(1, 1024, 1024)),
    ("matmul", "f32,bf16", _axes(1, 512, 512)),
    ("matmul", "f32,bf16", _axes(1, 1024, 1024)),
    *[("attention", "bf16", _axes(1, 512, 64, heads=8, causal=causal)) for causal in (0, 1)],
]
_BOTH = ",".join(f"{o}_{d}" for o in _ROWS.split(",") for d in ("fwd", "bwd"))
# operations for which torch.compile is the most important peer
_COMPILED: List[Tuple[str, str, Dict[str, Any]]] = [
    (_BOTH, "bf16", _axes(8, 1024, 4096)),
    (_BOTH, "bf16", _axes(8, 1024, 1024)),
    (_BOTH, "bf16", _axes(64, 1024, 64)),
    (_BOTH, "bf16", _axes(4, 1024, 16384)),
    ("gelu_erf_fwd,silu_fwd,dropout_fwd,mse_fwd", "bf16", _axes(16, 2048, 4096)),
    ("cross_entropy_fwd,cross_entropy_fwdbwd", "bf16", _axes(8, 1024, 50304)),
    ("embedding_bwd", "f32", _axes(16, 1024, 768, vocabulary=50304)),
    ("transpose_run", "f32", _axes(16, 1024, 8192)),
    ("matmul_fwd", "bf16", _axes(2, 1024, 2048)),
    ("matmul_fwd", "bf16", _axes(4, 1024, 4096)),
    ("matmul_fwd", "bf16", _axes(8, 1024, 8192)),
    *[("attention_fwd", "bf16", _axes(4, 4096, 128, heads=16, causal=causal)) for causal in (0, 1)],
    ("attention_fwd", "bf16", _axes(4, 4096, 64, heads=32, causal=1)),
]
# comparisons that suite(sizes=KEY) runs. A name without a direction, such as "copy", stands for all directions of
# the operation; "mse_fwd" stands for one direction
_SIZES_OF = {"usual": _RUNS, "small": _SMALL, "compiled": _COMPILED}
_NO_PEERS = ("chase", "h2d", "d2h", "d2d", "alloc", "null", "matmul_e4m3")
# Implementations that suite() leaves out by default: early rungs, which are slower than later rungs.
_FIRST_STEPS = (
    "naive",
    "atomic",
    "stride",
    "split",
    "matmul",
    "flash",
    "regblock",
    "cpasync",
    "mma",
    "pageable",
)


def _is_of(sizes: str, operation: str, direction: str, dtype: str, axes: Dict[str, Any]) -> bool:
    either = {operation, f"{operation}_{direction}"}
    return any(
        either & set(names.split(",")) and dtype in types.split(",") and axes == a
        for names, types, a in _SIZES_OF[sizes]
    )


def _plan(
    operations: Optional[Any], shapes: Any, dtypes: Optional[Sequence[str]], sizes: str = "usual"
) -> List[Tuple[str, str, Any]]:
    """Raises Error for unknown names, and if there is nothing to compare."""
    if sizes not in _SIZES_OF:
        raise Error(f"sizes='{sizes}' is unknown. Valid values: {', '.join(_SIZES_OF)}")
    for o in _NO_PEERS:
        if operations and o in operations:
            raise Error(f"{o} has no peers in Python. The suite in CUDA times it: examples/suite.cu --op {o}")
    plan: List[Tuple[str, str, Any]] = []
    if shapes is None and sizes != "usual":
        for names, types, axes in _SIZES_OF[sizes]:
            for name, dtype in itertools.product(names.split(","), types.split(",")):
                run = re.sub("_(fwd|bwd|fwdbwd|run)$", "", name), dtype, axes
                if (operations is None or run[0] in operations) and (not dtypes or dtype in dtypes):
                    plan += [run] if run not in plan else []
    elif shapes is None:
        for names, types, axes in _RUNS + ([] if dtypes else _ALSO) + (_OTHERS if operations else []):
            for name in names.split(","):
                for dtype in types.split(","):
                    if (operations is None or name in operations) and (not dtypes or dtype in dtypes):
                        plan.append((name, dtype, axes))
        done = {name for name, _, _ in plan}
        # adds operations that the caller requests in element types outside the standard comparison
        for names, types, axes in _RUNS + _OTHERS:
            for name in names.split(","):
                if operations and name in operations and name not in done:
                    has = {t for k in kernels if k.operation == name for t in k.dtypes}
                    plan += [(name, t, axes) for t in dtypes or () if t in has]
        # all other requested operations run with the size "medium" in their row of the kernel table
        for o in kernels.operations() if operations else ():
            if o.operation in operations and not any(name == o.operation for name, _, _ in plan):
                has = {t for k in kernels if k.operation == o.operation for t in k.dtypes}
                plan += [(o.operation, t, o._medium()) for t in dtypes or ("f32", "bf16") if t in has]
    else:
        several = [shapes] if isinstance(shapes, dict) else list(shapes)
        known = {"batch_size", "sequence_length", "tensor_dimension", "vocabulary", "heads", "causal", "n"}
        known |= {"stride", "among", "layout"}
        for axes in several:
            wrong = [k for k in axes if k not in known]
            if wrong:
                raise Error(f"unknown axis '{wrong[0]}'; nearest is '{_nearest(wrong[0], known)}'")
            if axes.get("layout", "nn") not in _LAYOUTS:
                raise Error(f"layout='{axes['layout']}' is unknown. Valid values: {', '.join(_LAYOUTS)}")
        names = operations or {n for names, _, _ in _RUNS for n in names.split(",")}
        order = list(dict.fromkeys(k.operation for k in kernels if k.operation in names))
        for name in order:
            has = {t for k in kernels if k.operation == name for t in k.dtypes}
            types = list(dtypes) if dtypes else [t for t in ("f32", "bf16") if t in has]
            family = next(k.family for k in kernels if k.operation == name)
            for axes in several:
                needs = {"lookup": ["vocabulary", "tensor_dimension"], "pick": ["n"]}.get(
                    family, ["n"] if family in ("map", "sum") and "n" in axes else ["tensor_dimension"]
                )
                lacks = [x for x in needs + ["among"] * (name == "gather") if x not in axes]
                if lacks:
                    raise Error(f"a shape of {name} needs {lacks[0]}; this one has only {', '.join(axes)}")
            plan += [(name, t, axes) for axes in several for t in types if t in has]
    if not plan:
        raise Error("There is nothing to compare: the operations have no kernels in these element types or sizes.")
    return plan


_PEERS = {
    "torch": "torch",
    "compile": "torch",
    "triton": "triton",
    "cudnn": "torch",
    "fa2": "torch",
    "cupy": "cupy",
}  # key: name of a peer; value: the Python module that the peer needs


def _installed(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


# Bounds on the error of the peers, ||got - want|| / ||want||. They are loose, because a peer may round
# intermediate results, but detect a peer that computes a different operation.
_PEER_NORM = {"f32": 1e-4, "f16": 1e-2, "bf16": 5e-2}


def _engine_stream(device: int) -> int:
    """Returns the stream on which kbench times functions. The stream is the same for the whole process; a timed
    function records it."""
    import torch

    seen: List[int] = []
    one = torch.zeros(1 << 16, dtype=torch.float32, device=f"cuda:{device}")

    def look(stream: int) -> None:
        seen.append(stream)
        one.fill_(1)

    kbench.time(look, samples=5, device=device)
    if not seen:
        raise Error("kbench could not time a function on this GPU. kbench.time(...) on this GPU shows why.")
    return seen[0]


class _Comparison:

    def __init__(
        self, operation: Operation, dtype: str, axes: Dict[str, Any], seed: int, device: int, stream: int
    ) -> None:
        import torch

        self.operation, self.dtype, self.axes, self.seed = operation, dtype, axes, seed
        self.device, self.stream = device, stream
        self.mode: Optional[str] = None
        self.torch = torch
        self.rows = axes.get("batch_size", 1) * axes.get("sequence_length", 1)
        self.layout = axes.get("layout", "nn")
        self.generator = torch.Generator(device=f"cuda:{device}")
        self.generator.manual_seed(seed)
        names, known = {}, operation.options
        candidates = {
            "p": 0.1,
            "seed": seed,
            "causal": bool(axes.get("causal", 0)),
            "vocabulary": axes.get("vocabulary", 1),
            "stride": axes.get("stride", 1),
            "layout": self.layout,
        }
        self.options = {k: v for k, v in candidates.items() if k in known}
        if operation.direction == "bwd" and self.forward is not None:
            names = self._after_forward()
        else:
            names = self._filled(operation)
        self.values: Dict[str, Any] = names
        self.inputs = [names[x] for x in operation.inputs]

    @property
    def forward(self) -> Optional[Operation]:
        return next(
            (
                o
                for o in kernels.operations()
                if o.operation == self.operation.operation and o.direction == "fwd"
            ),
            None,
        )

    def _sizes(self) -> Dict[str, Any]:
        a, get = self.axes, self.axes.get
        d = get("tensor_dimension", 1)
        letters: Dict[str, Any] = {
            "*": (self.rows,),
            "R": self.rows,
            "C": d,
            "V": get("vocabulary", 1),
            "A": get("among", 1),
        }
        if "n" in a:
            letters.update({"*": (a["n"],), "N": a["n"], "X": a["n"] * get("stride", 1)})
        elif self.operation.family in ("map", "sum"):
            letters["*"] = (self.rows, d)
        letters.update(M=self.rows, N=letters.get("N", d), K=d)
        if self.operation.name == "bmm_fwd":
            letters.update(Z=get("batch_size", 1), M=get("sequence_length", 1))
        letters.update(B=get("batch_size", 1), H=get("heads", 1), S=get("sequence_length", 1), D=d)
        return letters

    def _filled(self, operation: Operation) -> Dict[str, Any]:
        """Random values, with the distribution that the library specifies. For fill_run, which has no inputs: only
        the array "out"."""
        torch, letters = self.torch, self._sizes()
        signature = operation._parsed(self.layout)
        shape = operation._shape_of(letters, self.options)
        values = {}
        for (name, dims), t in zip(signature.inputs, operation._tensors(shape)):
            size: List[int] = []
            for x in dims:
                size += letters[x] if x == "*" else [letters[x]]
            kind = getattr(torch, _LONG[_KINDS[t.kind] or self.dtype])
            where = {"device": f"cuda:{self.device}"}
            if t.fill == 0:
                x = torch.randn(size, generator=self.generator, dtype=torch.float32, **where) * t.b + t.a
            elif t.fill == 1:
                x = (
                    torch.rand(size, generator=self.generator, dtype=torch.float32, **where) * (t.b - t.a)
                    + t.a
                )
            elif t.fill == 2:
                x = torch.randint(int(t.a), max(1, int(t.b)), size, generator=self.generator, **where)
            elif t.fill == 3:
                x = torch.full(size, t.a, **where)
            elif t.fill == 4:
                x = torch.arange(math.prod(size), **where).reshape(size) % max(1, int(t.b))
            else:
                raise Error(f"{operation.name}: {name} needs a distribution that kbench_kernels.py does not know.")
            values[name] = x.to(kind)
        if operation.name == "fill_run":
            values["out"] = torch.zeros(
                letters["*"], dtype=getattr(torch, _LONG[self.dtype]), device=f"cuda:{self.device}"
            )
        return values

    def _after_forward(self) -> Dict[str, Any]:
        torch, forward = self.torch, self.forward
        assert forward is not None
        values = self._filled(forward)
        options = {k: v for k, v in self.options.items() if k in forward.options}
        ladder = sorted(
            (k for k in kernels if k.name == forward.name and self.dtype in k.dtypes and not k.vendor),
            key=lambda k: -k.rung,
        )
        outputs = _first_that_runs(ladder, [values[x] for x in forward.inputs], options)
        values.update(outputs)
        first = outputs[forward.outputs[0]]
        values["d" + forward.outputs[0]] = torch.randn(
            first.shape, generator=self.generator, dtype=torch.float32, device=f"cuda:{self.device}"
        ).to(first.dtype)
        values["g"] = torch.full((1,), 0.75, device=f"cuda:{self.device}")
        return values

    def own(self, implementations: Optional[Sequence[str]], missing: List[Tuple[str, str]]) -> Dict[str, Any]:
        """Returns a dict that maps the name of each implementation that runs on this GPU to a pair: a Launch with
        outputs of its own, and the Kernel. Appends each kernel that does not run to the list `missing`, with the
        reason."""
        out: Dict[str, Any] = {}
        capability, name = _capability(self.device), self.operation.name
        ladder = [k for k in kernels if k.name == name and self.dtype in k.dtypes and k.runs_on(capability)]
        top = max((k.rung for k in ladder if not k.vendor), default=0)
        for k in ladder:
            if implementations is not None and k.implementation not in implementations:
                continue
            if implementations is None and k.implementation in _FIRST_STEPS and k.rung < top:
                continue
            if k.tf32:  # a TF32 kernel is not comparable with f32 peers
                if implementations is not None:
                    missing.append((f"{k.name} {k.implementation}", "multiplies in TF32, less precisely than f32 peers"))
                continue
            target = self.torch.empty_like(self.values["out"]) if k.name == "fill_run" else None
            try:
                launch = k.bind(*self.inputs, out=target, **self.options)
            except (Error, MemoryError, RuntimeError) as error:
                missing.append(
                    (f"{k.name} {k.implementation} {self.dtype} {self.axes}", str(error).splitlines()[0])
                )
                continue
            why = launch.why_not()
            outputs = launch.outputs if isinstance(launch.outputs, tuple) else (launch.outputs,)
            # overwrites the outputs, so that the check detects elements that a later launch does not write
            for x in outputs:
                x.fill_(math.nan if x.is_floating_point() else -1)
            if why:
                missing.append((f"{k.name} {k.implementation} {self.dtype} {self.axes}", why))
                continue
            out[k.implementation] = (launch, k)
        return out

    def run(
        self,
        peers: Sequence[str],
        implementations: Optional[Sequence[str]],
        max_time: float,
        precision: Optional[float],
        missing: List[Tuple[str, str]],
    ) -> List[Record]:
        self.torch.cuda.empty_cache()
        o = self.operation
        taken = self.own(implementations, missing)
        if not taken:
            return []
        given = [self.values["out"]] if o.name == "fill_run" else ()
        fit = o._fit(self.inputs, self.options, given)
        known = _OracleResult(o, fit)
        functions: Dict[str, Callable[[], Any]] = {}
        for peer in peers:
            for name, function in _PeerFunctions(self).of(peer, missing).items():
                functions[name] = function
        names = list(functions)
        for name, (launch, kernel) in taken.items():
            functions[name] = self._named(launch, kernel)

        def check(got: Tuple[bool, Dict[str, Any]]) -> Any:
            own, outputs = got
            if not own and o.operation == "dropout":
                return self._is_dropout(outputs)
            if own:
                return known.judge(outputs)
            types = {n: getattr(self.torch, _LONG[fit.output_dtype(k)]) for k, n in enumerate(o.outputs)}
            return known.judge({n: x.to(types[n]) for n, x in outputs.items()}, _PEER_NORM[self.dtype])

        library, shape = _host(), C.byref(fit.shape)
        records = kbench.compare(
            functions,
            name=o.operation,
            check=check,
            bytes=max(0.0, library.kbk_row_bytes(o._row, shape, fit.elem)),
            flops=max(0.0, library.kbk_row_flops(o._row, shape)),
            params={"dir": o.direction, **self.axes},
            dtype=self.dtype,
            mode=self.mode,
            max_time=max_time,
            precision=precision,
            seed=self.seed,
            device=self.device,
            expect=("transfer",) if o.operation == "copy" else (),
        )
        for record in records:
            name = record.implementation
            own = taken.get(name) if name not in names else None
            record._data["origin"] = "user" if own is None else "vendor" if own[1].vendor else "own"
            record._data["rung"] = 0 if own is None else own[1].rung
        return records

    @staticmethod
    def _named(launch: Launch, kernel: Kernel) -> Callable[[int], Any]:
        outputs = launch.outputs if isinstance(launch.outputs, tuple) else (launch.outputs,)
        named = True, dict(zip(kernel.outputs, outputs))

        def run(stream: int) -> Any:
            launch(stream)
            return named

        return run

    def _is_dropout(self, outputs: Dict[str, Any]) -> Tuple[bool, float, float, str]:
        """Checks a peer's dropout: the values of the elements that it kept, and the share of kept elements. An
        element-wise comparison with kbench would fail, because each peer drops different elements at random."""
        (got,) = outputs.values()
        source = self.values["dy" if self.operation.direction == "bwd" else "x"]
        kept = got != 0
        share = float(kept.float().mean())
        want = source[kept].float() / 0.9
        error = float((got[kept].float() - want).norm() / want.norm())
        bound, spread = _PEER_NORM[self.dtype], 5 * math.sqrt(0.09 / max(1, math.prod(got.shape))) + 1e-3
        text = f"a share of {share:.3f} is kept (expected 0.9); the error is {error:.2g}"
        return error <= bound and abs(share - 0.9) < spread, error, bound, text


# --- the suite: its peers -----------------------------------------------------------------------------------


class _PeerFunctions:
    """Each function of a peer returns (False, dict of outputs by name). False: the outputs do not come from a kernel
    of kbench."""

    def __init__(self, comparison: _Comparison) -> None:
        self.comparison, self.torch = comparison, comparison.torch
        self.operation, self.values = comparison.operation, comparison.values

    def of(self, peer: str, missing: List[Tuple[str, str]]) -> Dict[str, Callable[[], Any]]:
        make = {
            "torch": self._eager,
            "compile": self._compiled,
            "triton": self._triton,
            "cudnn": lambda: self._attention("CUDNN_ATTENTION"),
            "fa2": lambda: self._attention("FLASH_ATTENTION"),
            "cupy": self._cupy,
        }[peer]
        try:
            function = make()
            if function is None:
                return {}
            torch = self.torch
            torch.cuda.synchronize()
            # the first call compiles the peer and shows whether it runs on this machine
            with torch.cuda.stream(
                torch.cuda.ExternalStream(self.comparison.stream, device=self.comparison.device)
            ):
                function()
            torch.cuda.synchronize()
        except Exception as error:
            first = (str(error).splitlines() or [type(error).__name__])[0][:160]
            missing.append((f"{peer}: {self.operation.name} {self.comparison.dtype} {self.comparison.axes}", first))
            return {}
        return {peer: function}

    # --- PyTorch: forwards as functions of named tensors; backwards through autograd

    def _forward(self) -> Optional[Callable[..., Any]]:
        torch, o, axes = self.torch, self.operation.operation, self.comparison.axes
        F = torch.nn.functional
        causal = bool(axes.get("causal", 0))
        if o in ("matmul", "bmm"):
            return {
                "nn": lambda A, B: A @ B,
                "nt": lambda A, B: A @ B.transpose(-1, -2),
                "tn": lambda A, B: A.transpose(-1, -2) @ B,
            }[self.comparison.layout]
        known: Dict[str, Callable[..., Any]] = {
            # callers of matmul_e4m3 first convert A and B to an element type that torch can multiply
            "matmul_e4m3": lambda A, B, sa, sb: A @ B.transpose(-1, -2) * sa * sb,
            "copy": lambda x: x.clone(),
            "triad": lambda a, b: torch.add(a, b, alpha=3),
            "strided": lambda x: x[:: axes.get("stride", 1)].contiguous(),
            "gather": lambda x, idx: x[idx],
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "relu": lambda x: F.relu(x),
            "gelu_erf": lambda x: F.gelu(x),
            "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
            "silu": lambda x: F.silu(x),
            "dropout": lambda x: F.dropout(x, 0.1, True),
            "softmax": lambda x: torch.softmax(x, -1),
            "layernorm": lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-5),
            "rmsnorm": lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-5),
            "sum": lambda x: x.sum(),
            "mse": lambda x, y: F.mse_loss(x, y),
            "weighted_sum": lambda x, w: torch.mv(x, w),
            "transpose": lambda x: x.t().contiguous(),
            "cross_entropy": lambda x, t: F.cross_entropy(x, t, reduction="none"),
            "embedding": lambda W, ids: F.embedding(ids, W),
            "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        }
        return known.get(o)

    def _tensors(self) -> Dict[str, Any]:
        names = self.comparison.forward.inputs if self.operation.direction == "bwd" else self.operation.inputs
        out = {n: self.values[n] for n in names}
        if "t" in out:
            out["t"] = out["t"].long()  # torch's cross entropy needs int64
        return out

    def _eager(self) -> Optional[Callable[[], Any]]:
        o, torch = self.operation, self.torch
        if o.name in (
            "copy_run",
            "fill_run",
            "triad_run",
            "add_fwd",
            "mul_fwd",
            "div_fwd",
            "matmul_fwd",
            "bmm_fwd",
        ):
            return self._into()
        if o.name == "embedding_bwd":
            rows, dw = self.comparison.axes["vocabulary"], torch.ops.aten.embedding_dense_backward
            dy, ids = self.values["dy"], self.values["ids"].long()
            return lambda: (False, {"dW": dw(dy, ids, rows, -1, False)})
        if o.name == "weighted_sum_bwd":
            dy, x, w = (self.values[n] for n in ("dy", "x", "w"))
            return lambda: (False, {"dx": torch.outer(dy, w), "dw": torch.mv(x.t(), dy)})
        forward = self._forward()
        return self._of_forward(forward) if forward else None

    def _into(self) -> Callable[[], Any]:
        o, torch, v = self.operation.name, self.torch, self.values
        kind = {"dtype": getattr(torch, _LONG[self.comparison.dtype]), "device": f"cuda:{self.comparison.device}"}
        shape = v["out"].shape if o == "fill_run" else v[self.operation.inputs[0]].shape
        if o in ("matmul_fwd", "bmm_fwd"):
            forward = self._forward()
            out = torch.empty_like(forward(*self._tensors().values()))
            a, b = self._tensors().values()
            a = a.transpose(-1, -2) if self.comparison.layout == "tn" else a
            b = b.transpose(-1, -2) if self.comparison.layout == "nt" else b
            return lambda: (False, {"C": torch.matmul(a, b, out=out)})
        out = torch.empty(shape, **kind)
        work = {
            "copy_run": lambda: out.copy_(v["x"]),
            "fill_run": lambda: out.fill_(1),
            "triad_run": lambda: torch.add(v["a"], v["b"], alpha=3, out=out),
            "add_fwd": lambda: torch.add(v["a"], v["b"], out=out),
            "mul_fwd": lambda: torch.mul(v["a"], v["b"], out=out),
            "div_fwd": lambda: torch.div(v["a"], v["b"], out=out),
        }[o]
        return lambda: (False, {"y": work()})

    def _of_forward(self, forward: Callable[..., Any]) -> Callable[[], Any]:
        """For the backward pass alone, the forward pass runs once in advance. It runs on the current stream, because
        autograd runs a backward pass on the stream of its forward pass."""
        o, torch, tensors = self.operation, self.torch, self._tensors()
        if o.direction in ("fwd", "run"):
            name = o.outputs[0]

            def fwd() -> Any:
                with torch.no_grad():
                    return False, {name: forward(**tensors)}

            return fwd
        leaves = {n: x.detach().clone().requires_grad_(x.is_floating_point()) for n, x in tensors.items()}
        wanted = [n for n, x in leaves.items() if x.requires_grad and "d" + n in o.outputs]
        inputs = [leaves[n] for n in wanted]
        if o.direction == "fwdbwd":
            ones = torch.ones_like(leaves["x"][:, 0])

            def both() -> Any:
                loss = forward(**leaves)
                (dx,) = torch.autograd.grad(loss, inputs, ones)
                return False, {"loss": loss.detach(), "dx": dx}

            return both
        graphs: Dict[int, Any] = {}  # key: stream; value: (output of the forward pass, gradient of that output)
        dy = self.values["d" + self.comparison.forward.outputs[0]]

        def bwd() -> Any:
            stream = torch.cuda.current_stream().cuda_stream
            if stream not in graphs:
                y, grad = forward(**leaves), dy
                if o.operation in ("mse", "cross_entropy"):  # g is one number
                    grad = torch.ones_like(y) * self.values["g"].to(y.dtype).reshape(())
                graphs.clear()
                graphs[stream] = y, grad.to(y.dtype)
            y, grad = graphs[stream]
            got = torch.autograd.grad(y, inputs, grad, retain_graph=True)
            return False, {"d" + n: x for n, x in zip(wanted, got)}

        return bwd

    def _compiled(self) -> Optional[Callable[[], Any]]:
        forward = self._forward()
        if forward is None or self.operation.name in ("copy_run", "fill_run", "read_run"):
            return None
        import torch._functorch.config as config

        if hasattr(config, "donated_buffer"):
            config.donated_buffer = False  # allows retain_graph=True, because the backward pass runs repeatedly
        # without reset(), torch.compile runs a function eagerly after eight shapes were compiled
        self.torch.compiler.reset()
        return self._of_forward(self.torch.compile(forward, dynamic=False))

    def _attention(self, backend: str) -> Optional[Callable[[], Any]]:
        if self.operation.operation != "attention":
            return None
        from torch.nn.attention import SDPBackend, sdpa_kernel

        plain = self._forward()

        def forward(**tensors: Any) -> Any:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return plain(**tensors)

        return self._of_forward(forward)

    # --- Triton: kernels like those of its tutorials: each program keeps one row in registers

    def _triton(self) -> Optional[Callable[[], Any]]:
        name, columns = self.operation.name, self.comparison.axes.get("tensor_dimension", 0)
        takes = {"softmax_fwd": "x", "layernorm_fwd": "xwb", "rmsnorm_fwd": "xw", "add_fwd": "ab"}
        if name not in takes or (columns > 32768 and name != "add_fwd"):
            return None
        work, inputs = _triton_rows()[name], [self.values[x] for x in takes[name]]
        return lambda: (False, {"y": work(*inputs)})

    # --- CuPy

    def _cupy(self) -> Optional[Callable[[], Any]]:
        name, torch = self.operation.name, self.torch
        known = (
            "copy_run fill_run triad_run add_fwd mul_fwd div_fwd relu_fwd sum_run transpose_run matmul_fwd"
        )
        known += " bmm_fwd"
        if name not in known.split() or self.comparison.dtype == "bf16" or self.comparison.layout != "nn":
            return None
        import cupy

        v = {n: cupy.from_dlpack(x.detach()) for n, x in self.values.items()}
        first = v["out"] if name == "fill_run" else v[self.operation.inputs[0]]
        out = None
        if name not in ("sum_run", "transpose_run"):
            shape = first.shape[:-1] + (v["B"].shape[-1],) if "B" in v else first.shape
            out = cupy.empty(shape, first.dtype)
        triad = cupy.ElementwiseKernel("T a, T b", "T y", "y = a + (T)3 * b", "kbench_triad")
        work: Dict[str, Callable[[], Any]] = {
            "copy_run": lambda: cupy.copyto(out, v["x"]),
            "fill_run": lambda: out.fill(1),
            "triad_run": lambda: triad(v["a"], v["b"], out),
            "add_fwd": lambda: cupy.add(v["a"], v["b"], out=out),
            "mul_fwd": lambda: cupy.multiply(v["a"], v["b"], out=out),
            "div_fwd": lambda: cupy.divide(v["a"], v["b"], out=out),
            "relu_fwd": lambda: cupy.maximum(v["x"], 0, out=out),
            "sum_run": lambda: v["x"].sum(dtype="f4"),
            "transpose_run": lambda: cupy.ascontiguousarray(v["x"].T),
            "matmul_fwd": lambda: cupy.matmul(v["A"], v["B"], out=out),
            "bmm_fwd": lambda: cupy.matmul(v["A"], v["B"], out=out),
        }
        output, run = self.operation.outputs[0], work[name]

        def call() -> Any:
            got = run()
            return False, {output: torch.from_dlpack(out if got is None else got)}

        return call


_triton_made: Any = None


def _triton_rows() -> Any:
    global _triton_made
    if _triton_made is not None:
        return _triton_made
    import torch
    import triton
    import triton.language as tl

    # Triton looks up the names in a kernel's source in the globals of the kernel's module
    globals()["tl"] = tl

    @triton.jit
    def softmax_kernel(x, y, C, BLOCK: tl.constexpr):  # type: ignore
        i = tl.program_id(0).to(tl.int64) * C
        c = tl.arange(0, BLOCK)
        v = tl.load(x + i + c, mask=c < C, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + i + c, e / tl.sum(e, 0), mask=c < C)

    @triton.jit
    def layernorm_kernel(x, w, b, y, mean, rstd, C, BLOCK: tl.constexpr):  # type: ignore
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

    @triton.jit
    def rmsnorm_kernel(x, w, y, rstd, C, BLOCK: tl.constexpr):  # type: ignore
        r = tl.program_id(0).to(tl.int64)
        c = tl.arange(0, BLOCK)
        v = tl.load(x + r * C + c, mask=c < C, other=0.0).to(tl.float32)
        s = 1 / tl.sqrt(tl.sum(v * v, 0) / C + 1e-5)
        tl.store(rstd + r, s)
        tl.store(y + r * C + c, v * s * tl.load(w + c, mask=c < C, other=0.0), mask=c < C)

    @triton.jit
    def add_kernel(a, b, y, n, BLOCK: tl.constexpr):  # type: ignore
        c = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + c, tl.load(a + c, mask=c < n) + tl.load(b + c, mask=c < n), mask=c < n)

    def add(a: Any, b: Any) -> Any:
        y, n = torch.empty_like(a), a.numel()
        add_kernel[(triton.cdiv(n, 2048),)](a, b, y, n, BLOCK=2048)
        return y

    def rmsnorm(x: Any, w: Any) -> Any:
        y, rstd = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
        block = triton.next_power_of_2(x.shape[1])
        rmsnorm_kernel[(x.shape[0],)](
            x, w, y, rstd, x.shape[1], BLOCK=block, num_warps=min(32, max(4, block // 512))
        )
        return y

    def softmax(x: Any) -> Any:
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=min(32, max(4, block // 512)))
        return y

    def layernorm(x: Any, w: Any, b: Any) -> Any:
        y, mean = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
        rstd = torch.empty_like(mean)
        block = triton.next_power_of_2(x.shape[1])
        layernorm_kernel[(x.shape[0],)](
            x, w, b, y, mean, rstd, x.shape[1], BLOCK=block, num_warps=min(32, max(4, block // 512))
        )
        return y

    _triton_made = {
        "softmax_fwd": softmax,
        "layernorm_fwd": layernorm,
        "rmsnorm_fwd": rmsnorm,
        "add_fwd": add,
    }
    return _triton_made


# --- the suite: its table -----------------------------------------------------------------------------------


def _key_of(record: Record) -> str:
    axes = ("batch_size", "sequence_length", "tensor_dimension", "vocabulary", "heads", "causal", "n")
    axes += ("stride", "among", "layout")
    p = record.params
    return " ".join(
        [record.operation, record.direction, record.dtype] + [f"{a}={p[a]}" for a in axes if a in p]
    )


def _is_short(record: Record) -> bool:
    """Returns whether the tensor's rows have at most 64 elements, so that memory bandwidth does not limit the
    kernels."""
    return record.operation in _ROWS.split(",") and record.params["tensor_dimension"] <= 64


def _time_text(us: float) -> str:
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.1f} us" if us >= 10 else f"{us:.2f} us"


def _where(record: Record) -> str:
    p = record.params
    if "n" in p:
        return f"{p['n']}"
    if "heads" in p:
        causal = " causal" if p.get("causal") else ""
        return f"{p['batch_size']} x {p['heads']} x {p['sequence_length']} x {p['tensor_dimension']}{causal}"
    rows = p["batch_size"] * p["sequence_length"]
    return f"{rows} x {p['tensor_dimension']}" + (f" of {p['vocabulary']}" if "vocabulary" in p else "")


_PEER_NAMES = {
    "torch": "PyTorch",
    "compile": "torch.compile",
    "triton": "Triton",
    "cudnn": "cuDNN",
    "fa2": "FlashAttention 2",
    "cupy": "CuPy",
}
_GRAPHS = """\
Each time is the time of one launch among consecutive launches on the same tensors, which stay in the L2 cache. The
function is captured N times in a row into one CUDA graph and 2 N times into another. The number N of captured calls is
chosen so that the first graph takes 200 us or has 2000 kernels. Both CUDA graphs are queued behind a gate on the GPU
before the gate opens. A sample is the difference between the times of the two CUDA graphs, measured with events,
divided by N. The time includes the gaps between the kernels of a graph, but no launch overhead of the host. All
functions in a row of the table run in interleaved rounds, and the output of each function is checked before and after
its samples. The table shows the median of the samples; nothing is subtracted. A function that cannot be captured has
no time. The peers allocate their results with torch's caching allocator, which costs nothing inside a graph."""
_TOGETHER = [
    ("copy", "fill", "read", "triad", "add", "relu"),
    ("gelu_erf", "gelu_tanh", "silu", "dropout"),
    ("mse", "sum", "weighted_sum"),
    ("layernorm", "rmsnorm"),
    ("embedding", "transpose"),
]
# targets for the column "of a copy"; every operation that is not listed has the target 0.92
_COPY_SHARE = {("layernorm", "bwd"): 0.80, ("rmsnorm", "bwd"): 0.80, ("cross_entropy", "fwdbwd"): 0.85}


class Comparisons(Records):
    """The records of kernels.suite and their tables. Each row of a table shows one comparison: the fastest kernel
    of kbench and its share of the measured peak. The row also compares the fastest kernel with a copy of the same
    number of bytes in the same run, and with the best peer. .missing: list of (implementation, reason) of
    implementations that were not measured."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        super().__init__(records)
        self.missing: List[Tuple[str, str]] = []

    @classmethod
    def load(cls, path: str) -> "Comparisons":
        """Reads the records of a suite from a file that kbench.save has written."""
        return cls(kbench.load(path))

    def _find_peers(self, peers: Sequence[str], progress: bool) -> List[str]:
        present = []
        for peer in peers:
            if _installed(_PEERS[peer]):
                present.append(peer)
                continue
            self.missing.append((peer, f"{_PEERS[peer]} is not installed"))
            if progress:
                print(f"kbench: {peer} is left out: {_PEERS[peer]} is not installed", file=sys.stderr)
        return present

    def rows(self) -> Iterator[Dict[str, Any]]:
        """Yields one dict per comparison, in the order of measurement. The dict has the keys "name", "record" (of
        kbench's fastest kernel), "peers" (dict that maps a peer's name to its time in us), "peer" (name of the
        best peer) and "peer_us" (time of the best peer in us). The key "ratio" holds the best peer's time divided
        by kbench's time; the key "copy" holds the time of a copy of the same size divided by kbench's time."""
        times: Dict[float, float] = {}
        for r in self:
            if r.operation == "copy" and r.time_ms and r.origin == "own":
                times[r.bytes] = min(r.time_ms, times.get(r.bytes, math.inf))
        copies = sorted(times.items())

        def copy_ms(size: float) -> float:
            """Interpolated linearly between two measured copies, or extrapolated with the rate of the nearest one."""
            for (a, at_a), (b, at_b) in zip(copies, copies[1:]):
                if a <= size <= b:
                    return at_a + (at_b - at_a) * (size - a) / (b - a)
            nearest, ms = copies[0] if size < copies[0][0] else copies[-1]
            return ms * size / nearest

        groups: Dict[str, List[Record]] = {}
        for r in self:
            groups.setdefault(_key_of(r), []).append(r)
        for name, group in groups.items():
            own = [r for r in group if r.origin == "own" and r.time_ms]
            peers = {}
            for r in group:
                if r.origin != "own" and r.time_ms:
                    title = f"kbench's {r.implementation}" if r.origin == "vendor" else r.implementation
                    peers[_PEER_NAMES.get(title, title)] = 1000 * r.time_ms
            if not own:
                continue
            best = min(own, key=lambda r: r.time_ms)
            row: Dict[str, Any] = {"name": name, "record": best, "peer": None, "ratio": None, "copy": None}
            row["peers"] = peers
            if peers:
                row["peer"] = min(peers, key=lambda p: peers[p])
                row["peer_us"] = peers[row["peer"]]
                row["ratio"] = row["peer_us"] / (1000 * best.time_ms)
            if best.operation not in ("matmul", "bmm", "attention") and best.bytes and copies:
                row["copy"] = copy_ms(best.bytes) / best.time_ms
            yield row

    def _shown(self) -> Iterator[Dict[str, Any]]:
        """Copy kernels that only serve the column "of a copy" are left out."""
        copies = [r.params.get("n", 0) for r in self if r.operation == "copy"]
        for row in self.rows():
            r = row["record"]
            if r.operation != "copy" or r.params.get("n", 0) == max(copies):
                yield row

    def of(self, sizes: str) -> "Comparisons":
        """Returns the records of the comparisons that suite(sizes=...) runs."""
        axes = [{k: v for k, v in r.params.items() if k not in ("dtype", "dir")} for r in self]
        taken = Comparisons(r for r, a in zip(self, axes) if _is_of(sizes, r.operation, r.direction, r.dtype, a))
        taken.missing = self.missing
        return taken

    def _graphs(self) -> str:
        """Returns the table of launches in CUDA graphs: every comparison with all peers, and an explanation of the
        times."""
        rows = list(self._shown())
        titles = [t for t in _PEER_NAMES.values() if any(t in row["peers"] for row in rows)]
        lines = ["| " + " | ".join(["operation", "shape", "best of kbench", *titles, "kbench is"]) + " |"]
        lines.append("|---|---|---|" + "---|" * len(titles) + "---|")
        for row in rows:
            r = row["record"]
            cells = [f"{r.operation} {r.direction} {r.dtype}", _where(r)]
            cells.append(f"{_time_text(1000 * r.time_ms)} `{r.implementation}`")
            cells += [_time_text(row["peers"][t]) if t in row["peers"] else "-" for t in titles]
            cells.append("-" if row["ratio"] is None else f"{row['ratio']:.2f} x {row['peer']}")
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n\n" + _GRAPHS + "\n" + self._means_text()

    def _means_text(self) -> str:
        means = [f"{ratio:.2f} x {who} ({n} rows)" for who, (ratio, n) in self.means().items()]
        return "\nGeometric mean of the ratios: " + ", ".join(means) + "\n" if means else ""

    def markdown(self) -> str:
        """Returns a Markdown table with every comparison. Below the table, a line shows the geometric means that
        means() returns."""
        if self and all(r.cache == "graph" for r in self):
            return self._graphs()
        lines = [
            "| operation | shape | best of kbench | of the machine | of a copy | best peer | kbench is |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in self._shown():
            r = row["record"]
            share = "-" if r.gpu_efficiency is None else f"{r.gpu_efficiency:.0f} %"
            copy = "-" if row["copy"] is None else f"{row['copy']:.2f}"
            peer = "-" if row["peer"] is None else f"{_time_text(row['peer_us'])} {row['peer']}"
            ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f} x"
            best = f"{_time_text(1000 * r.time_ms)} `{r.implementation}`"
            cells = [f"{r.operation} {r.direction} {r.dtype}", _where(r), best, share, copy, peer, ratio]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n" + self._means_text()

    def table(self) -> None:
        """Prints the table of markdown() in aligned columns, then the list `.missing`."""
        rows, _, below = self.markdown().partition("\n\n")
        cells = [[c.strip(" `") for c in line.strip("|").split("|")] for line in rows.splitlines()]
        cells = [[c.replace("`", "") for c in line] for line in cells if not line[0].startswith("---")]
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        for line in cells:
            print("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip())
        if below:
            print("\n" + below.rstrip())
        for who, why in self.missing:
            print(f"missing: {who}: {why}")

    def means(self) -> Dict[str, Tuple[float, int]]:
        """Returns a dict that maps the name of a peer to (geometric mean of the peer's time divided by kbench's
        time, number of rows that the mean covers). kbench is compared with four peers: the best peer of each row,
        the best peer other than Triton, PyTorch, and torch.compile. The Triton kernels are in kbench_kernels.py. A
        mean covers the rows in which the peer was measured."""
        rows, out = list(self._shown()), {}
        triton, torch, compiled = (_PEER_NAMES[p] for p in ("triton", "torch", "compile"))
        of: Dict[str, Callable[[str], bool]] = {"the best peer": lambda p: True}
        if any(triton in row["peers"] for row in rows):
            of["the best peer except Triton"] = lambda p: p != triton
        of.update({torch: lambda p: p == torch, compiled: lambda p: p == compiled})
        for title, counts in of.items():
            ratios = []
            for row in rows:
                times = [us for p, us in row["peers"].items() if counts(p)]
                if times:
                    ratios.append(min(times) / (1000 * row["record"].time_ms))
            if ratios:
                out[title] = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)), len(ratios)
        return out

    def summary(self) -> str:
        """Returns a Markdown table with one row per group of operations. A row shows the range of the results over
        element types and shapes. Below the table, a line shows the geometric means that means() returns."""
        groups: Dict[Any, List[Dict[str, Any]]] = {}
        for row in self._shown():
            r = row["record"]
            names = next((g for g in _TOGETHER if r.operation in g), (r.operation,))
            names = tuple(_ROWS.split(",")) if _is_short(r) else names
            kind = r.dtype if r.operation == "matmul" else "64 columns" if _is_short(r) else ""
            groups.setdefault((names, kind), []).append(row)
        lines = [
            "| operation | rows | best of kbench | of the machine, % | of a copy | against the best peer |",
            "|---|---|---|---|---|---|",
        ]
        for (names, kind), rows in groups.items():
            records = [row["record"] for row in rows]
            directions = ", ".join(dict.fromkeys(r.direction for r in records if r.direction != "run"))
            count: Dict[str, int] = {}
            for r in records:
                count[r.implementation] = count.get(r.implementation, 0) + 1
            best = ", ".join(f"`{i}`" for i in sorted(count, key=lambda i: -count[i]))
            peers = dict.fromkeys(row["peer"] for row in rows if row["peer"])
            said = [p.replace("kbench's ", "").replace("cublas", "cuBLAS") for p in peers]
            faster = _range_of([row["ratio"] for row in rows], 2, " x")
            faster += " " + ", ".join(dict.fromkeys(said)) if said else ""
            title = " ".join(t for t in (", ".join(names), directions, kind) if t)
            machine = _range_of([r.gpu_efficiency for r in records], 0)
            copies = _range_of([row["copy"] for row in rows], 2)
            lines.append(f"| {title} | {len(rows)} | {best} | {machine} | {copies} | {faster} |")
        return "\n".join(lines) + "\n" + self._means_text()

    def missed(self) -> List[str]:
        """Returns one line for each comparison in which kbench is slower than a target, with the value and the
        target."""
        out = []
        for row in self.rows():
            r, words = row["record"], []
            asked = _COPY_SHARE.get((r.operation, r.direction), 0.92)
            if row["copy"] is not None and row["copy"] < asked and not _is_short(r):
                words.append(f"{row['copy']:.3f} of a copy ({asked})")
            floor = {"f32": 0.95}.get(r.dtype, 0.60) if r.operation == "matmul" else 1.0
            if row["ratio"] is not None and row["ratio"] < floor:
                words.append(f"{row['ratio']:.3f} of {row['peer']} ({floor})")
            if words:
                out.append(f"{row['name']}: {', '.join(words)}")
        return out


Contests = Comparisons  # the former name


def _range_of(values: Iterable[Optional[float]], digits: int, unit: str = "") -> str:
    texts = sorted({f"{v:.{digits}f}" for v in values if v is not None}, key=float)
    return "-" if not texts else " to ".join(dict.fromkeys([texts[0], texts[-1]])) + unit


# --- python3 kbench_kernels.py ------------------------------------------------------------------------------


def _main(words: Sequence[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="kbench_kernels.py",
        description="Compares the kernels of kbench with PyTorch and other libraries, and prints a table. Needs a "
        "GPU and PyTorch.",
    )
    parser.add_argument("--json", metavar="FILE", help="file that gets the records after each comparison")
    parser.add_argument("--load", metavar="FILE", help="print the table of a FILE of --json; needs no GPU")
    parser.add_argument("--op", metavar="A,B", help="names of operations (default: all with peers)")
    parser.add_argument("--dtype", metavar="A,B", help="element types: f32, f16, bf16")
    parser.add_argument("--peers", metavar="A,B", default=",".join(_PEERS), help="peers: " + ", ".join(_PEERS))
    parser.add_argument(
        "--max-time", type=float, default=0.3, metavar="S", help="seconds of sampling per implementation (0.3)"
    )
    parser.add_argument(
        "--sizes",
        choices=list(_SIZES_OF),
        help="usual: large tensors in memory; small: tensors in the L2 cache, launched as CUDA graphs; compiled: the "
        "shapes for the comparison with torch.compile. With --load: print only the rows of the chosen sizes",
    )
    parser.add_argument("--list", action="store_true", help="list the operations")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--summary", action="store_true", help="print one row per group of operations")
    form.add_argument("--missed", action="store_true", help="print comparisons in which kbench misses a target")
    o = parser.parse_args(list(words))
    for only in ("list", "load"):
        for name in ("json", "load", "op", "dtype", "peers", "max_time", "sizes", "summary", "missed"):
            works = name == only or (only == "load" and name in ("sizes", "summary", "missed"))
            if getattr(o, only) and not works and getattr(o, name) != parser.get_default(name):
                name = name.replace("_", "-")
                parser.error(f"--{only} measures nothing, so --{name} has no effect. Leave out either option.")

    def save(rows: Comparisons) -> None:
        if o.json:
            kbench.save(rows, o.json)

    try:
        if o.list:
            kernels.table()
            return 0
        if o.load:
            if not os.path.isfile(o.load):
                raise Error(f"there is no file {o.load}.")
            rows = Comparisons.load(o.load)
            axes, value = {"n", "heads", "batch_size"}, lambda r, key: getattr(r, key, None) or ""
            if not all(value(r, "direction") and value(r, "dtype") and axes & set(value(r, "params")) for r in rows):
                raise Error(f"{o.load} has records of another program. python3 -m kbench --load {o.load} shows them.")
            rows = rows.of(o.sizes) if o.sizes else rows
        else:
            split = lambda text: text.split(",") if text else None  # noqa: E731
            rows = kernels.suite(
                split(o.op),
                split(o.peers) or (),
                None,
                split(o.dtype),
                sizes=o.sizes or "usual",
                max_time=o.max_time,
                keep=save,
            )
            save(rows)
            for who, why in rows.missing:
                print(f"missing: {who}: {why}", file=sys.stderr)
    except Error as error:
        print(f"kbench: error: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(
        rows.summary() if o.summary else "\n".join(rows.missed() + [""]) if o.missed else rows.markdown()
    )
    return 0


if __name__ == "__main__":
    from kbench_kernels import _main as main  # whose classes kbench.kernels uses

    sys.exit(main(sys.argv[1:]))
