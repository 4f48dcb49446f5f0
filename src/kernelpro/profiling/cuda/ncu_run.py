"""Runs Nsight Compute on a command and returns what it captured, or why it captured nothing.

Never changes clocks (``--clock-control none``). A profiler that cannot work is missing evidence,
not an exception: the caller falls back to weaker collectors.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpro.errors import UserError
from kernelpro.isolation.tool_process import ToolProcess
from kernelpro.profiling.cuda.ncu_csv import NcuKernel, read_csv
from kernelpro.profiling.cuda.ncu_query import known_metrics, refused, request
from kernelpro.schema.profile import Missing
from kernelpro.text import truncate_middle

TIMEOUT_S = 120.0
REPLAYS = 1

PROBLEMS: tuple[tuple[str, str, str], ...] = (
    ("ERR_NVGPUCTRPERM", "no permission to read the GPU's counters",
     "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"),
    ("LibraryNotLoaded", "the profiler's driver library could not be loaded",
     "counters do not work inside this kind of container or sandbox"),
    ("ERR_NVGPUCTR", "the driver refused the counters", "check driver and ncu versions"),
    ("interfering", "another profiler holds the counters", "stop it and try again"),
    ("nsight-compute-lock", "the profiler's lock file belongs to another user",
     "remove it, or set TMPDIR to a folder of your own"),
    ("No kernels were profiled", "no kernel was captured",
     "the kernel filter, range or launch count matches no launch"),
    ("does not support", "this ncu does not support the GPU", "install a newer Nsight Compute"),
)  # fmt: skip
"""(text in ncu's output, what it means, what to do)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which launches to profile."""

    kernel: str | None = None
    """Regular expression on the kernel's base name."""
    nvtx_range: str | None = None
    """Only launches inside this NVTX push/pop range."""
    skip: int = 0
    count: int | None = None


@dataclass(slots=True)
class Captured:
    """What came back."""

    kernels: list[NcuKernel] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    seconds: float = 0.0
    dropped: tuple[str, ...] = ()
    """Metrics that this ncu or GPU does not know; profiled without them."""
    output: str = ""
    """Tail of the program's own output, for error texts."""


def command_line(
    ncu: Path, target: Sequence[str], metrics: Sequence[str], selection: Selection, log: Path
) -> list[str]:
    """The ncu command. The table goes to ``log``, so that the program's output cannot mix in."""
    command = [
        str(ncu), "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--target-processes", "all", "--log-file", str(log), "--metrics", ",".join(metrics),
    ]  # fmt: skip
    if selection.kernel is not None:
        command += ["--kernel-name", f"regex:{selection.kernel}"]
    if selection.nvtx_range is not None:
        command += ["--nvtx", "--nvtx-include", f"{selection.nvtx_range}/"]
    if selection.skip:
        command += ["--launch-skip", str(selection.skip)]
    if selection.count is not None:
        command += ["--launch-count", str(selection.count)]
    return [*command, *target]


def collect(
    ncu: Path,
    target: Sequence[str],
    metrics: Sequence[str],
    selection: Selection | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Captured:
    """Profile ``target``; metrics that this ncu does not know are dropped and named."""
    chosen = selection or Selection()

    def once(names: Sequence[str]) -> tuple[Captured, str]:
        return Run(ncu, target, names, chosen, environment).finish(timeout_s)

    return with_known_metrics(ncu, metrics, once)[0]


def with_known_metrics(
    ncu: Path,
    metrics: Sequence[str],
    once: Callable[[Sequence[str]], tuple[Captured, str]],
    *,
    without: Collection[str] = (),
) -> tuple[Captured, tuple[str, ...]]:
    """What ``once`` captures of those ``metrics`` that ``ncu`` knows, and which these are (none if
    ncu cannot be started: an ``OSError`` of ``once``, which gives ncu's table as text as well).

    The query sorts them out beforehand; what ncu refuses nevertheless is dropped in a second try.
    without: what it is known to refuse.
    """
    started = time.monotonic()
    asked = request(metrics, known_metrics(ncu))
    names = tuple(name for name in asked.metrics if name not in without)
    dropped = (*asked.unknown, *(name for name in asked.metrics if name in without))
    try:
        captured, table = once(names)
        if more := refused(table + captured.output, names):
            names, dropped = tuple(n for n in names if n not in more), (*dropped, *more)
            captured, _ = once(names)
    except OSError as error:
        reason = f"{ncu} does not exist" if isinstance(error, FileNotFoundError) else str(error)
        return _failed(reason, "install Nsight Compute"), ()
    captured.dropped, captured.seconds = dropped, time.monotonic() - started
    if dropped:
        reason = "this ncu or GPU does not have these metrics"
        captured.missing.append(Missing(what=", ".join(dropped), reason=reason))
    return captured, names


class Run:
    """ncu at work on one program."""

    def __init__(
        self,
        ncu: Path,
        target: Sequence[str],
        metrics: Sequence[str],
        selection: Selection,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; ``OSError`` if it cannot be."""
        # No TemporaryDirectory: a forked copy of this process would remove it with this object.
        self._folder = Path(tempfile.mkdtemp(prefix="kernelpro-ncu-"))
        self._log = self._folder / "ncu.csv"
        command = command_line(ncu, target, metrics, selection, self._log)
        try:
            self._tool = ToolProcess(command, os.environ if environment is None else environment)
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def alive(self) -> bool:
        """False once ncu has ended."""
        return self._tool.alive

    def finish(self, timeout_s: float) -> tuple[Captured, str]:
        """Wait for the end; what was captured, and ncu's table as text."""
        code, output = self._tool.finish(timeout_s)
        if code is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            return _failed(
                f"ncu did not finish within {timeout_s:.0f} s",
                "profile fewer launches, or raise the time limit",
            ), ""
        text = ""
        if self._log.is_file():
            text = self._log.read_text(encoding="utf-8", errors="replace")
        shutil.rmtree(self._folder, ignore_errors=True)
        captured = _read(text, output, code)
        captured.output = truncate_middle(output, 2000)
        return captured, text

    def kill(self) -> None:
        """End ncu and all that it started."""
        self._tool.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _read(text: str, output: str, code: int) -> Captured:
    try:
        return Captured(kernels=read_csv(text, name="ncu's output"))
    except UserError as error:
        unreadable = str(error)
    everything = text + output
    for symptom, reason, remedy in PROBLEMS:
        if symptom in everything:
            return _failed(reason, remedy)
    if code != 0:
        tail = output.strip().splitlines()[-1:] or ["no output"]
        return _failed(f"the profiled program ended with code {code}: {tail[0][:300]}", "")
    return _failed(unreadable, "")


def _failed(reason: str, remedy: str) -> Captured:
    return Captured(missing=[Missing(what="ncu counters", reason=reason, remedy=remedy)])
