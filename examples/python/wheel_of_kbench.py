# SPDX-License-Identifier: MIT OR Unlicense
"""Makes the wheel: kbench.py and kbench_kernels.py and, beside them, the headers of this checkout. pip calls it; it
needs nothing else, and so installs without a network."""

import base64
import hashlib
import os
import zipfile

here = os.path.dirname(os.path.abspath(__file__))
version = "0.1.0"
info = f"kbench-{version}.dist-info"
metadata = f"""Metadata-Version: 2.1
Name: kbench
Version: {version}
Summary: Benchmarks of GPU kernels and host code, measured and judged by the engine of kbench.h
License: MIT OR Unlicense
Requires-Python: >=3.8
"""
wheel = "Wheel-Version: 1.0\nGenerator: kbench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _write(path, files):
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
        z.writestr(zipfile.ZipInfo(f"{info}/RECORD", (1980, 1, 1, 0, 0, 0)), record + f"{info}/RECORD,,\n")


def _made(folder, files):
    name = f"kbench-{version}-py3-none-any.whl"
    files.update({f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()})
    _write(os.path.join(folder, name), files)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {}
    for folder, names in (
        (".", ("kbench.py", "kbench_kernels.py")),
        ("../..", ("kbench.h", "kbench_kernels.cuh")),
    ):
        for name in names:
            with open(os.path.join(here, folder, name), "rb") as f:
                files[name] = f.read()
    return _made(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _made(wheel_directory, {"kbench.pth": here.encode() + b"\n"})
