"""Two runs side by side, with what keeps them from being compared fairly."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.text import format_us
from kernelpro.views.diff_view import DiffView, diff_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary, run_summary


class CompareRow(NamedTuple):
    """One quantity in both runs, ready to read."""

    name: str
    first: str
    second: str
    same: bool


class CompareView(NamedTuple):
    """The comparison."""

    rows: tuple[CompareRow, ...]
    warnings: tuple[str, ...]
    ratio: float | None
    """Second best latency over first: above 1 the first run's kernel is faster. None if either
    run has no accepted candidate or they were measured on different problems or devices."""
    diff: DiffView
    """From the first run's best candidate to the second's."""


def compare_view(first: Run, second: Run) -> CompareView:
    """``first`` against ``second``."""
    a, b = run_summary(first), run_summary(second)
    warnings = _warnings(first, second)
    comparable = not warnings and a.latency_us and b.latency_us
    return CompareView(
        rows=tuple(_rows(a, b)), warnings=warnings,
        ratio=b.latency_us / a.latency_us if comparable and a.latency_us and b.latency_us else None,
        diff=diff_view(_best_source(first), _best_source(second)),
    )  # fmt: skip


def _rows(a: RunSummary, b: RunSummary) -> list[CompareRow]:
    pairs = [
        ("run", a.run_id, b.run_id),
        ("problem", a.problem, b.problem),
        ("device", a.device_name, b.device_name),
        ("writer", a.writer, b.writer),
        ("search", a.search, b.search),
        ("evaluations", str(a.evaluations), str(b.evaluations)),
        ("accepted", str(a.statuses.get("ok", 0)), str(b.statuses.get("ok", 0))),
        ("best", a.best_id or "none", b.best_id or "none"),
        ("best latency", _us(a.latency_us), _us(b.latency_us)),
        ("speed-up over eager", _times(a.speedup), _times(b.speedup)),
        ("speed-up over compile", _times(a.speedup_over_compile), _times(b.speedup_over_compile)),
        ("stopped because", a.stop_reason or a.state, b.stop_reason or b.state),
        ("wall time", f"{a.elapsed_s:.0f} s", f"{b.elapsed_s:.0f} s"),
    ]
    return [CompareRow(name, x, y, x == y) for name, x, y in pairs]


def _warnings(first: Run, second: Run) -> tuple[str, ...]:
    if first.started is None or second.started is None:
        return ("One of the runs never started.",)
    a, b = first.started, second.started
    found = []
    if a.problem.source_hash != b.problem.source_hash:
        found.append("The runs solve different problems.")
    if a.device.uuid != b.device.uuid:
        found.append("The runs were measured on different devices.")
    if a.config.evaluation.threads != b.config.evaluation.threads:
        found.append("The runs were measured with different thread counts.")
    if a.versions.get("torch") != b.versions.get("torch"):
        found.append("The runs used different versions of torch, so their baselines differ.")
    return tuple(found)


def _best_source(run: Run) -> str:
    return run.source(run.best_id) if run.best_id else ""


def _us(value: float | None) -> str:
    return format_us(value) if value is not None else "none"


def _times(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else "none"
