"""Fewer marks for the same picture: what a figure of 20,000 attempts needs to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Mark = TypeVar("Mark")


def thinned(
    marks: Sequence[Mark], limit: int, *, value: Callable[[Mark], float | None],
    keep: Callable[[Mark], bool],
) -> tuple[Mark, ...]:  # fmt: skip
    """About ``limit`` of ``marks`` at most, in order.

    All that ``keep`` says; of the rest, the highest, the lowest and one without a value of every
    stretch.
    """
    if len(marks) <= limit:
        return tuple(marks)
    stretch = max(1, 3 * len(marks) // limit)
    chosen = {place for place, mark in enumerate(marks) if keep(mark)}
    for begin in range(0, len(marks), stretch):
        part = range(begin, min(begin + stretch, len(marks)))
        valued = [(v, k) for k in part if (v := value(marks[k])) is not None]
        if valued:
            chosen |= {min(valued)[1], max(valued)[1]}
        chosen |= {next((k for k in part if value(marks[k]) is None), begin)}
    return tuple(marks[place] for place in sorted(chosen))
