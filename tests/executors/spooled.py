"""A spool with its controller, and workers on it as processes or in this thread."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernelpro.executors.spool import SpoolExecutor
from kernelpro.executors.spool_worker import WorkOptions, serve

LEASE_S = 1.0
WORKER = (
    "import sys; from pathlib import Path; "
    "from kernelpro.executors.spool_worker import serve, WorkOptions; "
    "serve(sys.argv[1], device='cpu', cache_root=Path(sys.argv[2]), name=sys.argv[3] or None, "
    "options=WorkOptions(idle_s=60), say=lambda text: print(text, file=sys.stderr, flush=True))"
)


@contextlib.contextmanager
def spool(tmp_path: Path, *, lease_s: float = LEASE_S) -> Iterator[SpoolExecutor]:
    executor = SpoolExecutor(tmp_path / "spool", lease_s=lease_s)
    try:
        yield executor
    finally:
        executor.close()


@contextlib.contextmanager
def workers(
    tmp_path: Path, count: int, *, before: list[str] | None = None, code: str = WORKER,
    names: str = "",
) -> Iterator[list[subprocess.Popen[bytes]]]:  # fmt: skip
    """Worker processes, each perhaps ``before`` a command that puts it somewhere else."""
    words = [*(before or []), sys.executable, "-c", code, str(tmp_path / "spool"), str(tmp_path)]
    started = [
        subprocess.Popen([*words, f"{names}{n}" if names else ""], stderr=subprocess.DEVNULL)
        for n in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def until(condition: Callable[[], Any], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def in_thread(tmp_path: Path, **options: Any) -> int:
    """Be a worker until the spool is empty; how many jobs were done."""
    return serve(
        tmp_path / "spool", device="cpu", cache_root=tmp_path, options=WorkOptions(drain=True),
        **options,
    ).jobs  # fmt: skip
