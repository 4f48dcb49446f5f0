"""Axes: from values to coordinates, and where to put the ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Scale(NamedTuple):
    """A linear or logarithmic axis from ``low``..``high`` to coordinates ``start``..``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def linear_ticks(high: float, count: int = 5) -> tuple[float, ...]:
    """Round numbers from 0 up to ``high``, about ``count`` of them."""
    if high <= 0:
        return (0.0,)
    rough = high / count
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough)
    return tuple(step * k for k in range(int(high / step + 1e-9) + 1))


def decade_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten within ``low``..``high``."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return tuple(10.0**k for k in range(first, last + 1))


def ratio_ticks(low: float, high: float) -> tuple[float, ...]:
    """Ratios a person reads at a glance within ``low``..``high``, at most eight."""
    dense = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0,
             64.0, 128.0, 256.0)  # fmt: skip
    ticks = tuple(t for t in dense if low <= t <= high)
    if len(ticks) <= 8:
        return ticks
    return tuple(10.0**k for k in range(-4, 6) if low <= 10.0**k <= high)


def padded(values: Sequence[float], factor: float) -> tuple[float, float]:
    """The range of positive ``values`` widened by ``factor`` on both sides, for a log axis."""
    return min(values) / factor, max(values) * factor
