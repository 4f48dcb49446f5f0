"""Intervals, paired differences and straight lines of a handful of windows. numpy only.

Windows are few (3 to 16) and each is a mean over seconds, so Student's t is used rather than a
bootstrap, which is too narrow for so few values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
SIGNIFICANT = 0.05
"""p-value below which two kernels are said to differ."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def half_width_share(self) -> float:
        """Half the interval over the value."""
        return 0.5 * (self.high - self.low) / abs(self.value) if self.value else math.inf


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """Second over first, of values measured in pairs."""

    ratio: Interval
    p_value: float
    pairs: int
    bound: float = 0.0
    """Share by which the ratio may be off because of the sensor, however often it is repeated;
    part of the interval."""

    @property
    def significant(self) -> bool:
        """True if neither chance nor the sensor is a likely reason for the difference."""
        return self.p_value < SIGNIFICANT and abs(self.ratio.value - 1.0) > self.bound


@dataclass(frozen=True, slots=True)
class Line:
    """Least-squares line through (work, energy): proportional if the intercept is small."""

    slope: float
    intercept: float
    r_squared: float
    worst_residual_share: float
    """Largest distance of a point from the line, over the point's value."""


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with Student's interval; infinite with fewer than two values. ``ValueError`` if none."""
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        raise ValueError("no values")
    mean = float(data.mean())
    if data.size == 1:
        return Interval(mean, -math.inf, math.inf)
    half = (
        t_quantile(0.5 + LEVEL / 2, data.size - 1) * float(data.std(ddof=1)) / math.sqrt(data.size)
    )
    return Interval(mean, mean - half, mean + half)


def widened(interval: Interval, error_share: float) -> Interval:
    """``interval`` widened by a systematic error bound, as a share of the value."""
    extra = abs(interval.value) * error_share
    return Interval(interval.value, interval.low - extra, interval.high + extra)


def paired_ratio(
    first: Sequence[float], second: Sequence[float], bound: float = 0.0
) -> PairedRatio:
    """Geometric mean of second over first, with interval and two-sided p-value (t on logarithms).

    Pairs share the machine's state (temperature, leakage), so its drift cancels. ``ValueError``
    unless there are at least two pairs of positive values.
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"at least two pairs are needed, got {len(first)} and {len(second)}")
    one, two = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if not (np.isfinite(one) & np.isfinite(two) & (one > 0) & (two > 0)).all():
        raise ValueError("values must be positive")
    logs = np.log(two / one)
    interval = mean_interval(logs.tolist())
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    if error == 0.0:
        p_value = 1.0 if interval.value == 0.0 else 0.0
    else:
        p_value = 2.0 * (1.0 - t_cdf(abs(interval.value) / error, len(logs) - 1))
    ratio = Interval(
        math.exp(interval.value),
        math.exp(interval.low) / (1.0 + bound),
        math.exp(interval.high) * (1.0 + bound),
    )
    return PairedRatio(ratio, min(1.0, p_value), len(logs), bound)


def line(work: Sequence[float], energy: Sequence[float]) -> Line:
    """Least-squares line. ``ValueError`` with fewer than three points or all at one place."""
    x, y = np.asarray(work, dtype=np.float64), np.asarray(energy, dtype=np.float64)
    if x.size < 3 or float(np.ptp(x)) == 0.0:
        raise ValueError("a line needs three points at different places")
    slope, intercept = (float(v) for v in np.polyfit(x, y, 1))
    residuals = y - (slope * x + intercept)
    spread = float(((y - y.mean()) ** 2).sum())
    r_squared = 1.0 - float((residuals**2).sum()) / spread if spread else 1.0
    return Line(slope, intercept, r_squared, float(np.max(np.abs(residuals / y))))


def t_cdf(t: float, degrees: int) -> float:
    """Distribution function of Student's t for whole degrees of freedom.

    Closed forms of Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    theta = math.atan2(t, math.sqrt(degrees))
    cosine_squared = math.cos(theta) ** 2
    if degrees % 2:
        term = total = math.cos(theta) if degrees > 1 else 0.0
        for k in range(3, degrees, 2):
            term *= cosine_squared * (k - 1) / k
            total += term
        inner = 2.0 / math.pi * (theta + math.sin(theta) * total)
    else:
        term = total = 1.0
        for k in range(2, degrees, 2):
            term *= cosine_squared * (k - 1) / k
            total += term
        inner = math.sin(theta) * total
    return 0.5 * (1.0 + inner)


def t_quantile(p: float, degrees: int) -> float:
    """Inverse of :func:`t_cdf` for 0.5 <= p < 1, by bisection to 1e-9."""
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < p:
        high *= 2.0
    while high - low > 1e-9 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if t_cdf(middle, degrees) < p else (low, middle)
    return 0.5 * (low + high)
