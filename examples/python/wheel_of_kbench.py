# SPDX-License-Identifier: MIT OR Unlicense
"""The build backend that pip calls (PEP 517). The wheel contains kbench.py, kbench_kernels.py and the headers of this
checkout. The sdist contains the same files as the wheel, so that a wheel built from the sdist is identical. The
backend has no requirements, so that pip installs kbench without a network."""

import base64
import gzip
import hashlib
import io
import os
import tarfile
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


def _read(name):
    """Looks in this script's folder, two folders up (headers), and in ../addons."""
    places = [here, os.path.join(here, "..", ".."), os.path.join(here, "..", "addons")]
    path = next(p for p in (os.path.join(place, name) for place in places) if os.path.isfile(p))
    with open(path, "rb") as f:
        return f.read()


parts = ("kbench.py", "kbench_kernels.py", "kbench.h", "kbench_inspect.h", "kbench_report.h", "kbench_kernels.cuh")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _made(wheel_directory, {name: _read(name) for name in parts})


def build_sdist(sdist_directory, config_settings=None):
    folder = f"kbench-{version}"
    files = {name: _read(name) for name in (*parts, "pyproject.toml", "wheel_of_kbench.py")}
    files["PKG-INFO"] = metadata.encode()
    path = os.path.join(sdist_directory, f"{folder}.tar.gz")
    # without a time stamp, so that the file is reproducible
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z:
        with tarfile.open(fileobj=z, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data in sorted(files.items()):
                about = tarfile.TarInfo(f"{folder}/{name}")
                about.size, about.mode = len(data), 0o644
                tar.addfile(about, io.BytesIO(data))
    return os.path.basename(path)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _made(wheel_directory, {"kbench.pth": here.encode() + b"\n"})
