"""Checks of the basis, the CPU's tools, and the sandbox layers."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelpro import environ, inline
from kernelpro.hardware.check import Check, ok

TIMEOUT_S = 60.0
MINIMUM_PYTHON = (3, 11)
MINIMUM_FREE_BYTES = 2 << 30
"""Chosen: a run of a few hundred CUDA builds with their logs."""
LANDLOCK_CREATE_RULESET = 444
"""System call number; the same on every architecture Linux has had since 5.13."""


def run(command: Sequence[str | Path]) -> tuple[int, str]:
    """(exit status, output) of a program; 127 with the reason if it does not start or end."""
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S, check=False, text=True, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return result.returncode, result.stdout.strip()


def last_line(text: str) -> str:
    """The last line of a program's output, for a table."""
    return (text.splitlines() or ["no output"])[-1][:200]


def python() -> Check:
    """The interpreter's version."""
    version = platform.python_version()
    if sys.version_info >= MINIMUM_PYTHON:
        return ok("python", f"{version} ({sys.executable})")
    return Check(name="python", status="unusable", detail=version,
                 remedy="use Python 3.11 or newer", needed_for="everything")  # fmt: skip


def torch() -> Check:
    """torch imports; with or without CUDA."""
    code = "import torch; print(torch.__version__, 'CUDA', torch.version.cuda, "
    code += "'usable' if torch.cuda.is_available() else 'not usable')"
    status, text = run([sys.executable, "-c", code])
    if status == 0:
        return ok("torch", last_line(text))
    missing = "No module named 'torch'" in text
    return Check(name="torch", status="missing" if missing else "unusable", detail=last_line(text),
                 remedy="pip install torch", needed_for="everything")  # fmt: skip


def build_cache() -> Check:
    """The cache folder can be written and has room."""
    folder = environ.cache_root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(name="cache", status="unusable", detail=str(error),
                     remedy="set KERNELPRO_CACHE to a folder you can write",
                     needed_for="builds and calibration")  # fmt: skip
    detail = f"{folder}, {free >> 30} GiB free"
    if os.access(folder, os.W_OK) and free >= MINIMUM_FREE_BYTES:
        return ok("cache", detail)
    return Check(name="cache", status="unusable", detail=detail,
                 remedy="make room or set KERNELPRO_CACHE to another folder",
                 needed_for="builds and calibration")  # fmt: skip


def compiler() -> Check:
    """A C++ compiler whose objects load here."""
    return _build("C++ compiler", 'extern "C" long answer() { return 42; }', 42,
                  "install g++ (Debian, Ubuntu: apt-get install g++) or set KERNELPRO_CXX",
                  "the cpu device")  # fmt: skip


def openmp() -> Check:
    """The compiler's OpenMP runtime works from a loaded object."""
    source = """#include <omp.h>
    extern "C" long answer() {
      int threads = 0;
      #pragma omp parallel num_threads(2) reduction(+ : threads)
      threads += 1;
      return threads == 2 && omp_get_max_threads() > 0;
    }"""
    return _build("OpenMP", source, 1, "install the compiler's OpenMP runtime (gcc: libgomp1, "
                  "clang: libomp-dev)", "threads in CPU kernels")  # fmt: skip


def _build(name: str, source: str, answer: int, remedy: str, needed_for: str) -> Check:
    try:
        result = inline.cpp(source, functions=["answer"]).answer()
        version = inline.find_compiler()[1]
    except inline.ToolchainError as error:
        return Check(name=name, status="missing", detail=str(error), remedy=remedy,
                     needed_for=needed_for)  # fmt: skip
    except (inline.BuildError, OSError) as error:
        return Check(name=name, status="unusable", detail=str(error)[:300], remedy=remedy,
                     needed_for=needed_for)  # fmt: skip
    if result == answer:
        return ok(name, version)
    return Check(name=name, status="unusable", detail=f"a test program returned {result}",
                 remedy=remedy, needed_for=needed_for)  # fmt: skip


def program(
    name: str, arguments: Sequence[str], remedy: str, needed_for: str
) -> Callable[[], Check]:
    """A check that ``name`` is on PATH and answers ``arguments`` with exit status 0."""

    def check() -> Check:
        path = shutil.which(name)
        if path is None:
            return Check(name=name, status="missing", detail=f"no {name} on PATH", remedy=remedy,
                         needed_for=needed_for)  # fmt: skip
        status, text = run([path, *arguments])
        numbered = [line for line in text.splitlines() if re.search(r"\d+\.\d+", line)]
        if status == 0:
            return ok(name, numbered[0].strip() if numbered else path)
        return Check(name=name, status="unusable", detail=last_line(text), remedy=remedy,
                     needed_for=needed_for)  # fmt: skip

    return check


def perf() -> Check:
    """perf and, separately, whether the kernel gives it hardware counters."""
    needed_for = "measured instruction counts of CPU kernels (static analysis stays)"
    path = shutil.which("perf")
    if path is None:
        return Check(name="perf counters", status="missing", detail="no perf on PATH",
                     remedy="install linux-perf (Ubuntu: linux-tools-generic)",
                     needed_for=needed_for)  # fmt: skip
    status, text = run([path, "stat", "-x,", "-e", "instructions:u", "true"])
    if status == 0 and re.match(r"\d", text):
        return ok("perf counters", f"{text.split(',')[0]} instructions counted")
    if "not supported" in text:
        detail, remedy = "the processor's counters are hidden", "run on the host, not in this VM"
    else:
        detail = last_line(text)
        remedy = "sysctl kernel.perf_event_paranoid=1 (as root), or run with CAP_PERFMON"
    return Check(name="perf counters", status="unusable", detail=detail, remedy=remedy,
                 needed_for=needed_for)  # fmt: skip


def bubblewrap() -> Check:
    """bwrap can make namespaces here."""
    needed_for = "the strongest sandbox layer for candidates"
    path = shutil.which("bwrap")
    if path is None:
        return Check(name="bubblewrap", status="missing", detail="no bwrap on PATH",
                     remedy="install bubblewrap", needed_for=needed_for)  # fmt: skip
    status, text = run([path, "--ro-bind", "/", "/", "--unshare-all", "true"])
    if status == 0:
        return ok("bubblewrap", run([path, "--version"])[1])
    return Check(name="bubblewrap", status="unusable", detail=last_line(text),
                 remedy="allow unprivileged user namespaces (Ubuntu 24.04: an AppArmor profile)",
                 needed_for=needed_for)  # fmt: skip


def landlock() -> Check:
    """The kernel's Landlock version."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    version_flag = ctypes.c_uint32(1)
    version = library.syscall(
        ctypes.c_long(LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), version_flag
    )
    if version > 0:
        return ok("Landlock", f"ABI {version}")
    reason = os.strerror(ctypes.get_errno())
    return Check(name="Landlock", status="missing", detail=f"the kernel says: {reason}",
                 remedy="boot with lsm=...,landlock on Linux 5.13 or newer",
                 needed_for="file-system limits for candidates without bubblewrap")  # fmt: skip


CHECKS: list[Callable[[], Check]] = [
    python, torch, build_cache, compiler, openmp,
    program("objdump", ["--version"], "install binutils", "disassembly of CPU kernels"),
    program("llvm-mca", ["--version"], "install llvm", "port and latency analysis of hot loops"),
    program("valgrind", ["--version"], "install valgrind", "instruction counts without perf"),
    perf, bubblewrap, landlock,
]  # fmt: skip
