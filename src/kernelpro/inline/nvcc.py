"""CUDA source to a cubin: NVRTC in this process, or nvcc as a child. Needs no GPU and no driver.

Standard library only.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelpro.inline.cache import Recipe, ToolchainError, run_compiler
from kernelpro.inline.ptxas import kernel_resources

NVCC_FLAGS = ("-cubin", "-std=c++17", "-O3", "-lineinfo", "-Xptxas", "-v",
              "--expt-relaxed-constexpr")  # fmt: skip
NVRTC_FLAGS = ("--std=c++17", "--generate-line-info", "--ptxas-options=-v", "-default-device",
               "--pre-include=kernelpro_prelude.h")  # fmt: skip
_MARKER = 'extern "C" __device__ char {} = 1;'
_INTEGERS = "".join(
    f"typedef {kind} int{bits}_t; typedef unsigned {kind} uint{bits}_t;\n"
    for bits, kind in ((16, "short"), (32, "int"), (64, "long"))
)
_STDINT = (
    "#pragma once\ntypedef signed char int8_t; typedef unsigned char uint8_t;\n" + _INTEGERS
    + "typedef long intptr_t; typedef unsigned long uintptr_t;\n"
    "namespace std { using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t;\n"
    "using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t; }\n"
)  # fmt: skip
_TENSOR_MAP = (
    "#pragma once\ntypedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } "
    "CUtensorMap;\n"
)
_LIMITS = (
    "#pragma once\n#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n"
    "#define FLT_EPSILON 1.192092896e-07f\n#define DBL_MAX 1.7976931348623158e+308\n"
    "#define DBL_MIN 2.2250738585072014e-308\n#define DBL_EPSILON 2.2204460492503131e-16\n"
    "#define INT_MAX 2147483647\n#define INT_MIN (-INT_MAX - 1)\n#define UINT_MAX 4294967295u\n"
)
_PRELUDE = "#pragma once\n#define INFINITY (1.0f / 0.0f)\n#define NAN (0.0f / 0.0f)\n"
"""nvcc includes math.h in every source; NVRTC knows its functions and not its macros. (A division
is the form that NVRTC takes for a constant expression.)"""
NSIGHT_FOLDERS = ("opt/nvidia/nsight-compute/*", "usr/local/NVIDIA-Nsight-Compute*")
"""Where Nsight Compute installs itself when it does not come with a toolkit, below ``/``."""
VIRTUAL_HEADERS = {"cstdint": _STDINT, "stdint.h": _STDINT, "cuda.h": _TENSOR_MAP,
    "cfloat": _LIMITS, "float.h": _LIMITS, "climits": _LIMITS, "limits.h": _LIMITS,
    "kernelpro_prelude.h": _PRELUDE} | dict.fromkeys(
    ("cuda_runtime.h", "device_launch_parameters.h", "cmath", "math.h", "cstddef", "stddef.h",
     "cstdio", "stdio.h"), "#pragma once\n",
)  # fmt: skip
"""Host headers that small kernels include by habit: NVRTC builds in what they would declare, or
cannot read them (cuda.h)."""
DEVICE_HEADERS = re.compile(
    r"(?:cuda_fp16|cuda_bf16|cuda_fp8|mma|cuda_pipeline|cuda_pipeline_primitives|math_constants"
    r"|vector_types|cooperative_groups)\.h|cooperative_groups/\w+\.h"
)
"""Toolkit headers that NVRTC compiles; a source with any other include goes to nvcc."""


def recipe(source: str, architecture: str, flags: Sequence[str], compiler: str) -> Recipe:
    """How to compile ``source`` for ``architecture`` with ``auto``, ``nvrtc`` or ``nvcc``.

    ``auto`` takes NVRTC (about 0.1 s) where every include allows it, else nvcc.
    """
    if compiler not in ("auto", "nvrtc", "nvcc"):
        raise ValueError(f"compiler must be auto, nvrtc or nvcc, not {compiler!r}")
    if compiler == "auto":
        compiler = _choose(source)
    extra = [f"-I{path}" for path in _cutlass(source)]
    if compiler == "nvcc":
        nvcc = find_nvcc()
        command = (str(nvcc), *NVCC_FLAGS, f"-arch={architecture}", *extra, *flags)
        return Recipe(
            language="cuda", suffix=".cu", object_suffix=".cubin", marker=_MARKER,
            compiler=nvcc_version(nvcc), command=command, machine="",
            compile=lambda path, target: run_compiler([*command, str(path), "-o", str(target)]),
            resources=kernel_resources,
        )  # fmt: skip
    nvrtc = Nvrtc(find_nvrtc())
    extra += [f"-I{path}" for path in cuda_includes()]
    options = (*NVRTC_FLAGS, f"--gpu-architecture={architecture}", *extra, *_nvrtc_flags(flags))
    return Recipe(
        language="cuda", suffix=".cu", object_suffix=".cubin", marker=_MARKER,
        compiler=nvrtc.version, command=("nvrtc", *options), machine="",
        compile=lambda path, target: nvrtc.compile(path, target, options),
        resources=kernel_resources,
    )  # fmt: skip


def _choose(source: str) -> str:
    includes = re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', source, flags=re.M)
    light = all(name in VIRTUAL_HEADERS or DEVICE_HEADERS.fullmatch(name) for name in includes)
    needs_folder = any(name not in VIRTUAL_HEADERS for name in includes)
    have_nvrtc = _nvrtc_candidates() and (cuda_includes() or not needs_folder)
    if have_nvrtc and (light or not find_cuda_program("nvcc")):
        return "nvrtc"
    return "nvcc"


def _nvrtc_flags(flags: Sequence[str]) -> list[str]:
    """nvcc's spelling of common flags in NVRTC's: callers need not know which lane it will be."""
    joined = re.sub(r"(-Xptxas|-I|-D)\s+", r"\1=", " ".join(flags)).split()
    translated = []
    for flag in joined:
        if flag.startswith(("-Xptxas=", "--ptxas-options=")):
            translated += [f"--ptxas-options={part}" for part in flag.split("=", 1)[1].split(",")]
        elif flag.startswith(("-I=", "-D=")):
            translated.append(flag[:2] + flag[3:])
        elif not re.fullmatch(r"-O\d|--expt-(?:relaxed-constexpr|extended-lambda)", flag):
            translated.append(flag)
    return translated


def _cutlass(source: str) -> list[Path]:
    """Include folders of CUTLASS if ``source`` uses it and it can be found."""
    if not re.search(r'^\s*#\s*include\s*[<"](?:cute|cutlass)/', source, flags=re.M):
        return []
    root = find_cutlass()
    if root is None:
        raise ToolchainError(
            "The source includes CUTLASS headers, and there are none: "
            "pip install --no-deps nvidia-cutlass, or set CUTLASS_HOME"
        )
    folders = [root / "include", root / "tools" / "util" / "include"]
    return [folder for folder in folders if folder.is_dir()]


CUTLASS_VARIABLES = ("CUTLASS_HOME", "CUTLASS_PATH", "KERNELPRO_CODE_ROOT")
"""Environment variables that may name a CUTLASS checkout, first come first served. The last one
is the tree of code search: what a writer reads there is then what is compiled against."""


@functools.cache
def find_cutlass() -> Path | None:
    """The CUTLASS tree: of :data:`CUTLASS_VARIABLES`, else of the package ``nvidia-cutlass``."""
    for name in CUTLASS_VARIABLES:
        chosen = os.environ.get(name)
        tree = Path(chosen).expanduser() if chosen else None
        if tree and any((tree / "include" / part).is_dir() for part in ("cute", "cutlass")):
            return tree
        if tree and tree.name == "include" and (tree / "cute").is_dir():
            return tree.parent
    for place in _package_folders("cutlass_library"):
        if (place / "source" / "include" / "cute").is_dir():
            return place / "source"
    return None


def _package_folders(name: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


def _chosen_root() -> Path | None:
    chosen = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    return Path(chosen).expanduser() if chosen else None


def cuda_roots() -> list[Path]:
    """Toolkit folders, best first: ``CUDA_HOME``, nvcc's own, NVIDIA's wheels, the usual places."""
    chosen = _chosen_root()
    roots = [chosen] if chosen else []
    on_path = shutil.which("nvcc")
    roots += [Path(on_path).resolve().parent.parent] if on_path else []
    for place in _package_folders("nvidia"):
        roots += [place / "cu13", place / "cuda_nvrtc", place / "cuda_runtime", place / "cuda_nvcc"]
    roots += [Path("/usr/local/cuda"), Path("/opt/cuda")]
    return [root for root in dict.fromkeys(roots) if root.is_dir()]


def cuda_includes() -> list[Path]:
    """Folder with the toolkit's headers (cuda_fp16.h ...), and CCCL's beside it."""
    for root in cuda_roots():
        for folder in (root / "include", root / "targets" / "x86_64-linux" / "include"):
            if (folder / "cuda_fp16.h").exists():
                cccl = folder / "cccl"
                return [folder, cccl] if cccl.is_dir() else [folder]
    return []


def find_cuda_program(name: str) -> Path | None:
    """One of NVIDIA's programs (``nvcc``, ``cuobjdump``, ``ncu`` ...): of ``CUDA_HOME``, of PATH,
    of the other :data:`cuda_roots` and wheels, of Nsight Compute's own folders, newest first, or
    the copies that Triton carries."""
    chosen, on_path = _chosen_root(), shutil.which(name)
    found = [chosen / "bin" / name] if chosen else []
    found += [Path(on_path)] if on_path else []
    found += [root / "bin" / name for root in cuda_roots()]
    found += [path for place in _package_folders("nvidia") for path in place.glob(f"*/bin/{name}")]
    found += [
        path
        for pattern in NSIGHT_FOLDERS
        for path in sorted(Path("/").glob(f"{pattern}/{name}"), key=_version, reverse=True)
    ]
    found += [place / "backends" / "nvidia" / "bin" / name for place in _package_folders("triton")]
    return next((path for path in found if path.is_file() and os.access(path, os.X_OK)), None)


def _version(path: Path) -> list[int]:
    """The numbers in a path, so that 2025.10 comes after 2025.2."""
    return [int(number) for number in re.findall(r"\d+", str(path))]


def find_nvcc() -> Path:
    """nvcc of ``CUDA_HOME``, PATH, NVIDIA's wheels or /usr/local/cuda; ``ToolchainError``."""
    path = find_cuda_program("nvcc")
    if path is None:
        raise ToolchainError("No nvcc: set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    return path


@functools.cache
def nvcc_version(nvcc: Path) -> str:
    """``nvcc 13.0.88``."""
    result = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\bV([\d.]+)", result.stdout)
    if not match:
        raise ToolchainError(f"{nvcc} does not run: {(result.stderr or result.stdout)[:200]}")
    return f"nvcc {match[1]}"


def _nvrtc_candidates() -> list[Path]:
    folders = [root / sub for root in cuda_roots() for sub in ("lib", "lib64")]
    found = [path for folder in folders for path in sorted(folder.glob("libnvrtc.so.*[0-9]"))]
    return [path for path in found if "alt" not in path.name]


def find_nvrtc() -> Path:
    """libnvrtc of torch's wheels, ``nvidia-cuda-nvrtc`` or a toolkit; ``ToolchainError``."""
    found = _nvrtc_candidates()
    if not found:
        raise ToolchainError("No libnvrtc: pip install nvidia-cuda-nvrtc, or set CUDA_HOME")
    return found[0]


class Nvrtc:
    """NVIDIA's run-time compiler, in this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"nvrtc {major.value}.{minor.value}"

    def compile(self, source: Path, target: Path, options: Sequence[str]) -> tuple[bool, str]:
        """Compile ``source`` and write the cubin to ``target``; (succeeded, log)."""
        library = self._library
        program = ctypes.c_void_p()
        names, texts = list(VIRTUAL_HEADERS), list(VIRTUAL_HEADERS.values())
        count = len(names)
        self._check(library.nvrtcCreateProgram(
            ctypes.byref(program), source.read_bytes(), str(source).encode(), count,
            _strings(texts), _strings(names),
        ))  # fmt: skip
        try:
            code = library.nvrtcCompileProgram(program, len(options), _strings(options))
            log = self._text("ProgramLog", program).decode("utf-8", "replace").rstrip("\0")
            if code:
                return False, log or self._error(code)
            target.write_bytes(self._text("CUBIN", program))
            return True, log
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, what: str, program: Any) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(1, size.value))
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw[: size.value]

    def _check(self, code: int) -> None:
        if code:
            raise ToolchainError(f"{self.path}: {self._error(code)}")

    def _error(self, code: int) -> str:
        function = self._library.nvrtcGetErrorString
        function.restype = ctypes.c_char_p
        return str(function(code).decode())


def _strings(texts: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])
