"""Medians, ratios and drift of timing samples, with intervals. numpy only; no clock, no torch.

Samples come in *rounds* (one block of calls each). Calls of one round share the machine's mood,
so the bootstrap resamples whole rounds: treating correlated samples as independent makes
intervals too narrow, and two copies of the same code would then "differ".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95

Samples = NDArray[np.float64]
Rounds = Sequence[Samples]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval as a share of the value."""
        return 0.5 * (self.high - self.low) / abs(self.value)


def median_ci(rounds: Rounds, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Median over all samples, with a percentile bootstrap interval over rounds.

    With one sample a round this is the ordinary bootstrap of the median.
    """
    data = _checked(rounds)
    medians = _resampled_medians(data, _picks(len(data), resamples, seed))
    return _estimate(float(np.median(np.concatenate(data))), medians, len(data))


def ratio_ci(
    numerator: Rounds, denominator: Rounds, *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Ratio of medians, numerator over denominator, of two sides measured in the same rounds.

    Both sides use the same resampled rounds: slow drift hits both and cancels.
    """
    top, bottom = _checked(numerator), _checked(denominator)
    if len(top) != len(bottom):
        raise ValueError(f"rounds must pair up: {len(top)} against {len(bottom)}")
    picks = _picks(len(top), resamples, seed)
    value = float(np.median(np.concatenate(top)) / np.median(np.concatenate(bottom)))
    ratios = _resampled_medians(top, picks) / _resampled_medians(bottom, picks)
    return _estimate(value, ratios, len(top))


def drift_p_value(values: Sequence[float]) -> float:
    """Two-sided p-value of the Mann-Kendall test for a monotone trend (Mann 1945, Kendall 1975).

    Normal approximation with correction for ties and continuity; 1.0 below four values.
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n < 4:
        return 1.0
    score = int(np.sign(x[None, :] - x[:, None])[np.triu_indices(n, 1)].sum())
    _, ties = np.unique(x, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18.0
    if variance <= 0 or score == 0:
        return 1.0
    z = (abs(score) - 1) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2.0))


def _checked(rounds: Rounds) -> list[Samples]:
    data = [np.asarray(r, dtype=np.float64) for r in rounds]
    if not data or any(r.size == 0 for r in data):
        raise ValueError("every round needs at least one sample")
    if any(bool((r <= 0).any()) for r in data):
        raise ValueError("times must be positive")
    return data


def _picks(count: int, resamples: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, size=(resamples, count))


def _resampled_medians(data: list[Samples], picks: NDArray[np.int64]) -> Samples:
    """Median of the pooled samples of each resampled set of rounds.

    A pooled median is a weighted one: every round counts as often as it was picked.
    """
    pooled = np.concatenate(data)
    order = np.argsort(pooled, kind="stable")
    owner = np.repeat(np.arange(len(data)), [len(r) for r in data])[order]
    ordered = pooled[order]
    times_picked = (picks[:, :, None] == np.arange(len(data))).sum(axis=1)
    # below[p, r]: samples of round r among the p + 1 smallest.
    below = np.cumsum(owner[:, None] == np.arange(len(data)), axis=0)
    total = times_picked @ below[-1]
    low = _first_reaching(below, times_picked, (total + 1) // 2)
    high = _first_reaching(below, times_picked, total // 2 + 1)
    middle: Samples = 0.5 * (ordered[low] + ordered[high])
    return middle


def _first_reaching(
    below: NDArray[np.int64], weights: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each row of ``weights`` the first position whose weighted count is ``target``: bisection
    of all rows at once."""
    low, high = np.zeros_like(target), np.full_like(target, len(below) - 1)
    while bool((low < high).any()):
        middle = (low + high) // 2
        reached = (weights * below[middle]).sum(axis=1) >= target
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low


def _estimate(value: float, resampled: Samples, clusters: int) -> Estimate:
    """Percentile interval around a positive value, widened on the logarithmic scale by
    sqrt(n / (n - 1)): few clusters resample too tamely."""
    tail = 50.0 * (1.0 - LEVEL)
    low, high = np.percentile(resampled, [tail, 100.0 - tail])
    widen = math.sqrt(clusters / (clusters - 1)) if clusters > 1 else 1.0
    return Estimate(
        value=value,
        low=float(value * min(1.0, low / value) ** widen),
        high=float(value * max(1.0, high / value) ** widen),
    )
