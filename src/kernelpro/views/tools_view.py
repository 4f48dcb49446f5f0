"""Which advice paid: per tool, how often it spoke, was followed, and what came of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kernelpro.views.candidate_view import gain_over_parent
from kernelpro.views.run import Run

HIT_GAIN = 1.5
"""A followed piece of advice is a hit above this gain over the parent (paper, section 2)."""


class ToolRow(NamedTuple):
    """Effectiveness of one tool."""

    tool: str
    given: int
    """Attempts whose writer had this tool's advice in front of it."""
    followed: int
    """Attempts that said they act on it."""
    accepted: int
    """Of those followed, how many were accepted by the referee and can be compared."""
    hits: int
    """Of those, how many gained more than ``HIT_GAIN`` over the parent."""
    mean_gain: float | None
    """Geometric mean gain over the parent of those accepted."""
    predicted: tuple[float, float] | None
    """Geometric means of the predicted interval's ends, over the attempts that followed."""


def tools_view(run: Run) -> tuple[ToolRow, ...]:
    """Rows for every tool that spoke, those that paid most first."""
    return tools_of_runs([run])


def tools_of_runs(runs: Iterable[Run]) -> tuple[ToolRow, ...]:
    """As :func:`tools_view`, over the attempts of all ``runs`` together."""
    seen = _Seen()
    for run in runs:
        seen.take(run)
    return tuple(sorted(seen.rows(), key=lambda r: (-(r.mean_gain or 0.0), -r.followed, r.tool)))


class _Seen:
    """What was counted of each tool so far."""

    def __init__(self) -> None:
        self.given: dict[str, int] = defaultdict(int)
        self.followed: dict[str, int] = defaultdict(int)
        self.gains: dict[str, list[float]] = defaultdict(list)
        self.predicted: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def take(self, run: Run) -> None:
        """Count the attempts of ``run``."""
        for node_id, facts in run.facts.items():
            parent = run.parent_of(node_id)
            if facts.mode != "optimize" or parent is None:
                continue
            intervals = {item.tool: item.expected_gain for item in run.advice[parent]}
            for tool in intervals:
                self.given[tool] += 1
            gain = gain_over_parent(run, node_id)
            for tool in facts.acted_on:
                self.followed[tool] += 1
                if tool in intervals:
                    self.predicted[tool].append(intervals[tool])
                if gain is not None:
                    self.gains[tool].append(gain)

    def rows(self) -> list[ToolRow]:
        """One of every tool that spoke or was followed."""
        return [
            ToolRow(
                tool=tool, given=self.given[tool], followed=self.followed[tool],
                accepted=len(self.gains[tool]), hits=sum(g > HIT_GAIN for g in self.gains[tool]),
                mean_gain=geometric_mean(self.gains[tool]),
                predicted=_mean_interval(self.predicted[tool]),
            )
            for tool in {*self.given, *self.followed}
        ]  # fmt: skip


def geometric_mean(values: list[float]) -> float | None:
    """The geometric mean of positive values; None of none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _mean_interval(intervals: list[tuple[float, float]]) -> tuple[float, float] | None:
    low = geometric_mean([low for low, _ in intervals])
    high = geometric_mean([high for _, high in intervals])
    return (low, high) if low is not None and high is not None else None
