"""Counters of a candidate, by a profiled program that was started before there was a candidate.

Under ncu a program takes some seconds to import torch. The next one is started when a profile is
done, imports, and waits for its job without touching the GPU; it ends with this process.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpro.isolation.one_call import RANGE
from kernelpro.isolation.one_call_job import OneCallJob
from kernelpro.profiling.cuda.ncu_run import TIMEOUT_S, Captured, Run, Selection, with_known_metrics

LAUNCHES = 24
"""Kernel launches profiled with counters; a call with more is described by its timeline."""


class Program:
    """One profiled program, from its start to its end."""

    def __init__(self, ncu: Path, metrics: Sequence[str]) -> None:
        """Start it; it waits for :meth:`profile`. ``OSError`` if ``ncu`` cannot be."""
        self.key = (ncu, tuple(metrics))
        self._job = OneCallJob()
        selection = Selection(nvtx_range=RANGE, count=LAUNCHES)
        try:
            self._run = Run(ncu, self._job.command, metrics, selection, self._job.environment)
        except OSError:
            self._job.remove()
            raise

    @property
    def alive(self) -> bool:
        """True while it waits or works."""
        return self._run.alive

    def profile(
        self, source: str, build_root: Path, job: Mapping[str, Any], *, timeout_s: float
    ) -> tuple[Captured, str]:
        """Give it the candidate and wait for its end: what was captured, and ncu's table."""
        self._job.give(source, build_root, job)
        try:
            return self._run.finish(timeout_s)
        finally:
            self._job.remove()

    def close(self) -> None:
        """End it without a job."""
        self._run.kill()
        self._job.remove()


class Profiler:
    """Profiles candidates one after the other. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: Program | None = None
        self._owner = os.getpid()
        self._refused: set[str] = set()

    def counters(
        self, ncu: Path, metrics: Sequence[str], source: str, build_root: Path,
        job: Mapping[str, Any], *, more: bool, timeout_s: float = TIMEOUT_S,
    ) -> Captured:  # fmt: skip
        """Counters of one candidate; metrics that this ncu does not know are dropped and named.

        more: another candidate is likely to follow, so its program is started now.
        """

        def once(names: Sequence[str]) -> tuple[Captured, str]:
            program = self._take(ncu, names)
            return program.profile(source, build_root, job, timeout_s=timeout_s)

        captured, taken = with_known_metrics(ncu, metrics, once, without=self._refused)
        self._refused |= set(captured.dropped)
        if more and taken:
            self.prepare(ncu, taken)
        return captured

    def prepare(self, ncu: Path, metrics: Sequence[str]) -> None:
        """Start the next program, unless one waits already."""
        with self._lock:
            self._forget_after_fork()
            if self._waiting is None or not self._waiting.alive:
                self._drop()
                self._waiting = Program(ncu, metrics)

    def _take(self, ncu: Path, metrics: Sequence[str]) -> Program:
        with self._lock:
            self._forget_after_fork()
            program = self._waiting
            if program is not None and program.alive and program.key == (ncu, tuple(metrics)):
                self._waiting = None
                return program
            self._drop()
        return Program(ncu, metrics)

    def close(self) -> None:
        """End the program that waits."""
        with self._lock:
            self._forget_after_fork()
            self._drop()

    def _drop(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    def _forget_after_fork(self) -> None:
        """A forked copy of this process must not end its parent's program."""
        if os.getpid() != self._owner:
            self._waiting, self._owner = None, os.getpid()


PROFILER = Profiler()
atexit.register(PROFILER.close)
