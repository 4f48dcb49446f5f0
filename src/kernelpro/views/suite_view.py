"""Many runs as one result: the distribution of their speed-ups, and what may not be averaged."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from kernelpro.views.run import Run
from kernelpro.views.run_summary import run_summary
from kernelpro.views.tools_view import geometric_mean


class SuiteRow(NamedTuple):
    """One run."""

    name: str
    """Name of its folder, for links."""
    problem: str
    device: str
    writer: str
    speedup: float | None
    """Of the best accepted attempt over eager, measured again where it was; may be below 1. None
    if no attempt was accepted."""
    over_compile: float | None
    keep_eager: bool
    evaluations: int
    accepted: int
    labels: tuple[str, ...]
    """Task-lint labels: a labelled run stays out of the aggregates."""
    remeasured: bool
    state: str


class Spread(NamedTuple):
    """A distribution in six numbers."""

    runs: int
    geomean: float
    median: float
    quartiles: tuple[float, float]
    low: float
    high: float
    below_one: float
    """Share of the values below 1.0, 0..1."""


class SuiteView(NamedTuple):
    """All runs, and the spread of those that count."""

    rows: tuple[SuiteRow, ...]
    """Fastest first; unsolved ones last."""
    over_eager: Spread | None
    over_compile: Spread | None
    flagged: int
    unsolved: int
    warnings: tuple[str, ...]


def suite_view(runs: Iterable[tuple[str, Run]]) -> SuiteView:
    """The suite of ``(folder name, run)``; each run is let go once its row is made."""
    rows = sorted((_row(name, run) for name, run in runs),
                  key=lambda r: (r.speedup is None, -(r.speedup or 0.0), r.name))  # fmt: skip
    counted = [row for row in rows if not row.labels]
    return SuiteView(
        rows=tuple(rows),
        over_eager=spread([r.speedup for r in counted if r.speedup is not None]),
        over_compile=spread([r.over_compile for r in counted if r.over_compile is not None]),
        flagged=len(rows) - len(counted),
        unsolved=sum(row.speedup is None for row in counted),
        warnings=_warnings(rows),
    )


def spread(values: list[float]) -> Spread | None:
    """The numbers of a distribution of positive values; None of none.

    Quartiles by linear interpolation between the data (``method='inclusive'``).
    """
    mean = geometric_mean(values)
    if mean is None:
        return None
    low, middle, high = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return Spread(
        runs=len(values), geomean=mean, median=middle, quartiles=(low, high), low=min(values),
        high=max(values), below_one=sum(v < 1.0 for v in values) / len(values),
    )  # fmt: skip


def _row(name: str, run: Run) -> SuiteRow:
    summary = run_summary(run)
    return SuiteRow(
        name=name, problem=summary.problem, device=summary.device_name, writer=summary.writer,
        speedup=summary.speedup, over_compile=summary.speedup_over_compile,
        keep_eager=summary.keep_eager, evaluations=summary.evaluations,
        accepted=summary.statuses.get("ok", 0), labels=summary.labels,
        remeasured=summary.remeasured, state=summary.stop_reason or summary.state,
    )  # fmt: skip


def _warnings(rows: list[SuiteRow]) -> tuple[str, ...]:
    found = []
    devices = {row.device for row in rows if row.device}
    if len(devices) > 1:
        found.append(f"The runs were measured on {len(devices)} different devices.")
    problems = [row.problem for row in rows]
    repeated = sorted({p for p in problems if problems.count(p) > 1})
    if repeated:
        found.append(f"Some problems count more than once: {', '.join(repeated)}.")
    loose = sum(not row.remeasured for row in rows if row.speedup is not None)
    if loose:
        found.append(
            f"{loose} of the speed-ups were not measured again after their search, so they are "
            "the best of many and too good on average."
        )
    return tuple(found)
