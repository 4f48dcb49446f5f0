"""Two runs, or two attempts, side by side, with what keeps them from being compared fairly."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelpro.schema.outcome import Outcome
from kernelpro.text import format_us
from kernelpro.views.diff_view import DiffView, diff_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import RunSummary, over_compile, run_summary
from kernelpro.views.words import plain, status_word, stop_word


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
    """Second latency over first: above 1 the first kernel is faster. None if either was not
    accepted or they were measured on different problems or devices."""
    diff: DiffView
    """From the first attempt's file to the second's."""


def compare_view(
    first: Run, second: Run, *, first_node: str | None = None, second_node: str | None = None
) -> CompareView:
    """``first`` against ``second``: their best attempts, or the attempts named.

    ``KeyError`` if a run has no such attempt.
    """
    one = _side(first, first_node)
    two = _side(second, second_node)
    warnings = _warnings(first, second)
    comparable = not warnings and one.latency_us and two.latency_us
    rows = [] if first is second else _run_rows(run_summary(first), run_summary(second))
    rows += _attempt_rows(one, two)
    return CompareView(
        rows=tuple(CompareRow(name, x, y, x == y) for name, x, y in rows), warnings=warnings,
        ratio=two.latency_us / one.latency_us
        if comparable and one.latency_us and two.latency_us else None,
        diff=diff_view(one.source, two.source),
    )  # fmt: skip


class _Side(NamedTuple):
    """The attempt that stands for a run."""

    node_id: str | None
    title: str
    outcome: Outcome | None
    source: str
    knobs: dict[str, Any]

    @property
    def latency_us(self) -> float | None:
        """Median of an accepted attempt."""
        outcome = self.outcome
        if outcome is None or not outcome.ok or outcome.latency is None:
            return None
        return outcome.latency.median_us


def _side(run: Run, named: str | None) -> _Side:
    node_id = named or run.best_id
    if node_id is None:
        return _Side(None, "", None, "", {})
    candidate = run.nodes[node_id].candidate
    assert candidate is not None
    proposal = candidate.proposal
    return _Side(node_id, proposal.title, run.outcome(node_id), proposal.source, proposal.knobs)


Row = tuple[str, str, str]


def _run_rows(a: RunSummary, b: RunSummary) -> list[Row]:
    return [
        ("run", a.run_id, b.run_id),
        ("problem", a.problem, b.problem),
        ("device", a.device_name, b.device_name),
        ("writer", a.writer, b.writer),
        ("search", a.search, b.search),
        ("evaluations", str(a.evaluations), str(b.evaluations)),
        ("accepted", str(a.statuses.get("ok", 0)), str(b.statuses.get("ok", 0))),
        ("stopped because", _end(a), _end(b)),
        ("wall time", f"{a.elapsed_s:.0f} s", f"{b.elapsed_s:.0f} s"),
    ]


def _attempt_rows(a: _Side, b: _Side) -> list[Row]:
    x, y = a.outcome, b.outcome
    rows = [
        ("attempt", a.node_id or "none", b.node_id or "none"),
        ("what", a.title, b.title),
        ("verdict", status_word(x.status if x else None), status_word(y.status if y else None)),
        ("latency", _us(a.latency_us), _us(b.latency_us)),
        ("speed-up over eager", _speedup(x), _speedup(y)),
        ("speed-up over compile", _times(over_compile(x)), _times(over_compile(y))),
        ("largest error", _error(x), _error(y)),
    ]
    for name in dict.fromkeys((*a.knobs, *b.knobs)):
        mine, other = str(a.knobs.get(name, "none")), str(b.knobs.get(name, "none"))
        if mine != other:
            rows.append((f"knob {plain(name)}", mine, other))
    return rows


def _end(summary: RunSummary) -> str:
    return stop_word(summary.stop_reason) if summary.stop_reason else summary.state


def _speedup(outcome: Outcome | None) -> str:
    return _times(outcome.speedup if outcome else None)


def _error(outcome: Outcome | None) -> str:
    correctness = outcome.correctness if outcome else None
    return f"{correctness.max_abs_error:.2g}" if correctness else "not measured"


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


def _us(value: float | None) -> str:
    return format_us(value) if value is not None else "none"


def _times(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else "none"
