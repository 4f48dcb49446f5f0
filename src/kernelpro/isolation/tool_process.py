"""A profiler or sanitizer at work: it and the program it wraps, ended together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence


class ToolProcess:
    """A program with everything that it starts in a session of its own, output kept."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it, with messages in English; ``OSError`` if it cannot be."""
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**environment, "LC_ALL": "C"}, start_new_session=True,
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        """False once it has ended."""
        return self.process.poll() is None

    def finish(self, timeout_s: float) -> tuple[int | None, str]:
        """Wait for its end: exit code (None: out of time, and it was ended) and output."""
        try:
            output, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None, ""
        return self.process.returncode, output

    def kill(self) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
