"""Runs the commands of a recording, keeps their wall times and what came back. Judges nothing."""

from __future__ import annotations

import gzip
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parent


class Recorder:
    """Runs commands, keeps their wall times, collects what came back."""

    def __init__(self, out: Path, work: Path, deadline: float = 480.0) -> None:
        self.out, self.work, self.deadline = out, work, deadline
        self.seconds: dict[str, float] = {}
        self.failures: dict[str, str] = {}
        self.started = time.monotonic()

    def run(self, label: str, command: list[str], timeout: float = 240.0) -> str | None:
        """Output of the command, None if it failed (the reason is kept)."""
        begun = time.monotonic()
        env = {**os.environ, "LC_ALL": "C", "PYTHONPATH": str(ROOT)}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=timeout,
                env=env, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.failures[label] = f"no end after {timeout:.0f} s"
            return None
        except OSError as error:
            self.failures[label] = str(error)
            return None
        finally:
            self.seconds[label] = round(time.monotonic() - begun, 2)
        if done.returncode != 0:
            tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
            self.failures[label] = " | ".join(tail)[-600:] or f"exit code {done.returncode}"
            if not label.startswith("ncu"):
                return None
        return done.stdout

    def write(self, name: str, text: str) -> None:
        """``text`` as a gzip file in the output folder."""
        (self.out / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))

    def late(self) -> bool:
        """True once optional steps should be left out."""
        return time.monotonic() - self.started > self.deadline

    def note(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)
