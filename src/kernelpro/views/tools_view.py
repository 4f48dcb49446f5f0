"""Which advice paid: per tool, how often it spoke, was followed, and what came of it."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from kernelpro.views.candidate_view import gain_over_parent
from kernelpro.views.run import Run

HIT_GAIN = 1.5
"""A followed piece of advice is a hit above this gain over the parent (paper, section 2)."""


class ToolRow(NamedTuple):
    """Effectiveness of one tool in this run."""

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
    given: dict[str, int] = defaultdict(int)
    followed: dict[str, int] = defaultdict(int)
    gains: dict[str, list[float]] = defaultdict(list)
    predicted: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for node_id, facts in run.facts.items():
        parent = run.parent_of(node_id)
        if facts.mode != "optimize" or parent is None:
            continue
        intervals = {item.tool: item.expected_gain for item in run.advice[parent]}
        for tool in intervals:
            given[tool] += 1
        gain = gain_over_parent(run, node_id)
        for tool in facts.acted_on:
            followed[tool] += 1
            if tool in intervals:
                predicted[tool].append(intervals[tool])
            if gain is not None:
                gains[tool].append(gain)
    rows = [
        ToolRow(
            tool=tool, given=given[tool], followed=followed[tool], accepted=len(gains[tool]),
            hits=sum(g > HIT_GAIN for g in gains[tool]), mean_gain=geometric_mean(gains[tool]),
            predicted=_mean_interval(predicted[tool]),
        )
        for tool in {*given, *followed}
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda r: (-(r.mean_gain or 0.0), -r.followed, r.tool)))


def geometric_mean(values: list[float]) -> float | None:
    """The geometric mean of positive values; None of none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _mean_interval(intervals: list[tuple[float, float]]) -> tuple[float, float] | None:
    low = geometric_mean([low for low, _ in intervals])
    high = geometric_mean([high for _, high in intervals])
    return (low, high) if low is not None and high is not None else None
