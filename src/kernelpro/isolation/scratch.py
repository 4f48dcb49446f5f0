"""The private folder of a subject, and the environment its processes see.

The environment is a whitelist: no key, token or user setting of the referee gets through.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernelpro.build.artifacts import build_environment
from kernelpro.inline.nvcc import CUTLASS_VARIABLES
from kernelpro.text import format_si

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH",
             "CUDA_HOME", "CUDA_PATH", "CUDA_DEVICE_ORDER", "CC", "CXX", "KERNELPRO_CXX",
             "NVCC_CCBIN", *CUTLASS_VARIABLES,
             "KERNELPRO_CUDA_ARCH", "TORCH_CUDA_ARCH_LIST")  # fmt: skip
"""What compilers and drivers are found by. Values are the referee's own."""


def zygote_environment(*, threads: int, visible_device: str | None) -> dict[str, str]:
    """Environment a zygote starts with. ``visible_device`` = value of CUDA_VISIBLE_DEVICES."""
    count = str(threads)
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        # Read once, when the libraries load: a change of thread count needs another zygote.
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "NUMEXPR_NUM_THREADS": count,
        # LLVM's OpenMP spins for 200 ms after a region: beside whoever is measured next.
        "KMP_BLOCKTIME": "10",
        "CUDA_VISIBLE_DEVICES": "" if visible_device is None else visible_device,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        # In-process: a pool of compile workers would outlive the call that started it.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0",
    }


def job_environment(scratch: Path, build_root: Path) -> dict[str, str]:
    """What a subject adds after the fork: every place it may write to is its own."""
    return {
        "HOME": str(scratch),
        "TMPDIR": str(scratch / "tmp"),
        "XDG_CACHE_HOME": str(build_root / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(build_root / "inductor"),
        "CUDA_CACHE_PATH": str(build_root / "cuda"),
        **build_environment(build_root),
    }


def make_scratch() -> Path:
    """A new private folder with a ``tmp`` inside."""
    folder = Path(tempfile.mkdtemp(prefix="kernelpro-subject-")).resolve()
    (folder / "tmp").mkdir()
    return folder


ADD_UP_EVERY = 5
"""Chosen. Questions, about a second apart, between two additions of the folders."""


class DiskFull(Exception):
    """A subject wrote more than its quota."""


class DiskQuota:
    """Notices when folders have grown beyond a limit. Cheap to ask: the folders are added up once
    the file systems they lie on have lost that much space, and every few times anyway, because
    others may give space back meanwhile."""

    def __init__(self, folders: Sequence[Path], limit_bytes: int) -> None:
        self._folders = tuple(folders)
        self._limit = limit_bytes
        self._asked = 0
        self._free_before = [_free_bytes(folder) for folder in self._folders]

    def excess(self) -> str | None:
        """What was exceeded, in words, or None."""
        lost = (
            before - _free_bytes(folder)
            for folder, before in zip(self._folders, self._free_before, strict=True)
        )
        self._asked += 1
        if max(lost) <= self._limit and self._asked % ADD_UP_EVERY:
            return None
        used = sum(_used_bytes(folder) for folder in self._folders)
        if used <= self._limit:
            return None
        return f"wrote {format_si(used, 'B')} of files; at most {format_si(self._limit, 'B')}"


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _used_bytes(folder: Path) -> int:
    done = subprocess.run(
        ["du", "-s", "--block-size=1", "--", str(folder)], check=False, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    words = done.stdout.split()
    return int(words[0]) if words and words[0].isdigit() else 0


def remove_scratch(folder: Path) -> bool:
    """Delete the folder whatever a candidate made of it; True if it is gone."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        # Nested beyond Python's recursion limit, or with permissions taken away.
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run(
                [*command, "--", str(folder)], check=False, timeout=60,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
    return not folder.exists()
