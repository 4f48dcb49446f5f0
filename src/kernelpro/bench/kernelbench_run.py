"""Runs a suite: tasks one after another in a process of their own, replaced when it dies.

A task that crashes its process, hangs or outlasts the suite's limit never ends the suite. What a
task was doing when the limit came is on disk and goes on next time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from kernelpro.bench.kernelbench_record import Fault, TaskResult
from kernelpro.bench.kernelbench_suite import Suite
from kernelpro.bench.kernelbench_tasks import Task
from kernelpro.errors import MachineError

GRACE_S = 20.0
"""Between asking a worker to end and killing it (chosen: an evaluation ends within seconds)."""
TASK_LIMIT_S = 1800.0
"""Chosen. A task that takes longer hangs, unless its own minutes allow it more."""
OVERHEAD_S = 600.0
"""Chosen. What export, lint, second measurement and compilation may take beyond those minutes."""
START_S = 120.0
"""Chosen. Importing torch on a busy machine takes tens of seconds."""
TAIL = 400
"""Characters of a dead worker's last words that go into the record."""

Ended = Literal["done", "died", "late"]
OnResult = Callable[[TaskResult], None]


def run_suite(
    suite: Suite, tasks: Sequence[Task], *, root: Path, cache_root: Path,
    generations: Path | None = None, limit_minutes: float | None = None,
    retry_failed: bool = False, on_result: OnResult = lambda result: None,
) -> int:  # fmt: skip
    """Perform what is pending of ``tasks``; returns how many are still pending at the end.

    ``on_result`` is told every result as it comes. Ctrl-C ends the task in work cleanly.
    """
    ends_at = None if limit_minutes is None else time.monotonic() + 60 * limit_minutes
    worker = _Worker(suite, root, cache_root, generations)
    try:
        for task in suite.pending(tasks, retry_failed=retry_failed):
            if ends_at is not None and time.monotonic() >= ends_at:
                break
            result = _perform(worker, suite, task, ends_at)
            on_result(result)
    finally:
        worker.close()
    return len(suite.pending(tasks))


def _perform(worker: _Worker, suite: Suite, task: Task, ends_at: float | None) -> TaskResult:
    minutes = suite.config.task_minutes
    own = TASK_LIMIT_S if minutes is None else max(TASK_LIMIT_S, 60 * minutes + OVERHEAD_S)
    hangs_at = time.monotonic() + own
    first = hangs_at if ends_at is None else min(hangs_at, ends_at)
    ended = worker.perform(task, first)
    result = suite.result(task.key) or TaskResult(
        key=task.key, name=task.name, problem_hash="", state="started"
    )
    if ended == "done" or result.state != "started":
        return result
    if ended == "late" and time.monotonic() < hangs_at:
        return dataclasses.replace(result, detail="cut off by the suite's limit; goes on next time")
    fault: Fault = "time" if ended == "late" else "crash"
    detail = f"took longer than {own / 60:.0f} minutes" if ended == "late" else worker.last_words()
    failed = dataclasses.replace(result, state="failed", fault=fault, detail=detail)
    suite.save(failed)
    return failed


class _Worker:
    """The process that performs tasks; started on first use, and again after it ended."""

    def __init__(
        self, suite: Suite, root: Path, cache_root: Path, generations: Path | None
    ) -> None:
        self._settings = {
            "suite": str(suite.folder), "root": str(root), "cache": str(cache_root),
            "generations": None if generations is None else str(generations),
        }  # fmt: skip
        self._log = suite.folder / "worker.log"
        self._process: subprocess.Popen[str] | None = None
        self._reply = -1

    def perform(self, task: Task, until: float) -> Ended:
        """Hand over a task and wait for its end, at most until the monotonic time ``until``.

        ``MachineError`` if the process does not even start.
        """
        process = self._process or self._begin()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{task.key}\n")
            process.stdin.flush()
        ended = self._hear(until)
        if ended != "done":
            self.close()
        return ended

    def _hear(self, until: float) -> Ended:
        """Wait for one byte."""
        ready, _, _ = select.select([self._reply], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return "late"
        return "done" if os.read(self._reply, 1) else "died"

    def last_words(self) -> str:
        """The end of what the worker printed."""
        text = self._log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
        lines = text.strip().splitlines()
        return f"the process ended: {lines[-1]}" if lines else "the process ended without a word"

    def _begin(self) -> subprocess.Popen[str]:
        read, write = os.pipe()
        command = [sys.executable, "-m", "kernelpro.bench.kernelbench_worker",
                   json.dumps({**self._settings, "reply": write})]  # fmt: skip
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                pass_fds=[write], start_new_session=True,
            )  # fmt: skip
        os.close(write)
        self._reply = read
        if self._hear(time.monotonic() + START_S) != "done":
            self.close()
            raise MachineError(f"No process for the suite's tasks: {self.last_words()}")
        return self._process

    def close(self) -> None:
        """End the process: politely, so that its run is left in order, then for good."""
        process = self._process
        if process is None:
            return
        self._process = None
        os.close(self._reply)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
