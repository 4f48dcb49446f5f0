"""Compiles C++ for the collector's tests with the real compiler."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from kernelpro import inline
from kernelpro.build.artifacts import read_manifest
from kernelpro.profiling.cpu.native import native_kernels
from kernelpro.schema.build import Artifact
from kernelpro.schema.profile import KernelProfile, Missing

needs_tools = pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("objdump") or not shutil.which("g++"),
    reason="needs g++ and objdump on x86-64",
)

AVX512 = ("-march=x86-64-v4", "-mprefer-vector-width=512")
AVX2 = ("-march=x86-64-v3",)
PRELUDE = "#include <cmath>\n#include <cstdint>\n#include <immintrin.h>\n"


def build(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, *flags: str
) -> tuple[Artifact, ...]:
    """Artifacts of one source; the object is loaded, never called."""
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(folder))
    inline.cpp(PRELUDE + source, flags=flags)
    return read_manifest(folder)


def kernel_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, *flags: str
) -> tuple[KernelProfile, list[Missing]]:
    """Profile of the only entry point of one source."""
    kernels, missing = native_kernels(build(folder, monkeypatch, source, *flags))
    assert len(kernels) == 1
    return kernels[0], missing
