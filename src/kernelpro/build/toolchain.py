"""Finds the programs and headers that builds and their analysis use; never installs any."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernelpro import inline
from kernelpro.inline import nvcc

CUDA_PROGRAMS = frozenset({"nvcc", "ptxas", "cuobjdump", "nvdisasm", "ncu", "nsys"})
"""Looked for in toolkit folders, NVIDIA's wheels and Triton too; others only on PATH."""
VERSION_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that was found; ``version`` is its own words, empty if it does not say."""

    name: str
    path: Path
    version: str = ""


@functools.cache
def find_tool(name: str) -> Tool | None:
    """The program ``name`` with its version, or None. ``cxx`` is the C++ compiler that
    ``inline.cpp`` uses."""
    if name == "cxx":
        try:
            command, version = inline.find_compiler()
        except inline.ToolchainError:
            return None
        return Tool(name=name, path=Path(command[0]), version=version)
    if name in CUDA_PROGRAMS:
        path = nvcc.find_cuda_program(name)
    else:
        found = shutil.which(name)
        path = Path(found) if found else None
    return Tool(name=name, path=path, version=_version(path)) if path else None


def cutlass_headers() -> tuple[Path, str] | None:
    """(include folder, version) of the CUTLASS tree that ``inline.cuda`` uses, or None."""
    root = nvcc.find_cutlass()
    if root is None or not (root / "include" / "cutlass").is_dir():
        return None
    return root / "include", cutlass_version(root)


def cutlass_version(root: Path) -> str:
    """``4.2.0``, from version.h; ``unknown`` if that file is missing or different."""
    try:
        text = (root / "include" / "cutlass" / "version.h").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    parts = [re.search(rf"#define CUTLASS_{part}\s+(\d+)", text) for part in
             ("MAJOR", "MINOR", "PATCH")]  # fmt: skip
    return ".".join(match[1] for match in parts if match) or "unknown"


def _version(path: Path) -> str:
    """The line of ``--version`` that names a number."""
    try:
        result = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=VERSION_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in (result.stdout or result.stderr).splitlines()]
    numbered = [line for line in lines if re.search(r"\d+\.\d+", line)]
    release = [line for line in numbered if re.search(r"release|version", line, flags=re.I)]
    return (release or numbered or [""])[0][:120]
