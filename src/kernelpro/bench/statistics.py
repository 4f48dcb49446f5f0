"""Statistics of paired comparisons: what the ablation says, and how sure it is.

Standard library and numpy only; checked against scipy in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

EXACT_LIMIT = 50
"""Pairs up to which the signed-rank distribution is enumerated exactly (scipy's limit too)."""
RESAMPLES = 5_000


class SignedRank(NamedTuple):
    """One-sided Wilcoxon signed-rank test of "the first is larger"."""

    statistic: float
    """Sum of the ranks of the positive differences."""
    pairs: int
    """Pairs that differ; equal ones carry no information."""
    p: float


class Wins(NamedTuple):
    """Head to head over the pairs."""

    first: int
    second: int
    ties: int


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive values; ``ValueError`` if there is none, or one is not positive."""
    if not values or min(values) <= 0:
        raise ValueError("the geometric mean needs at least one value, all of them positive")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def signed_rank(first: Sequence[float], second: Sequence[float]) -> SignedRank:
    """Wilcoxon's test on the pairs, alternative "first > second".

    Zero differences are dropped and tied ones share their mean rank (Wilcoxon's own treatment).
    Exact up to 50 pairs, by enumerating the sums of ranks, ties included; the normal
    approximation with tie and continuity correction beyond. ``p`` is 1.0 without a difference.
    """
    differences = [a - b for a, b in zip(first, second, strict=True) if a != b]
    if not differences:
        return SignedRank(0.0, 0, 1.0)
    ranks = _mean_ranks([abs(d) for d in differences])
    statistic = math.fsum(r for r, d in zip(ranks, differences, strict=True) if d > 0)
    exact = len(ranks) <= EXACT_LIMIT
    p = _exact_p(ranks, statistic) if exact else _normal_p(ranks, statistic)
    return SignedRank(statistic, len(differences), p)


def bootstrap_interval(
    first: Sequence[float], second: Sequence[float], *, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Percentile interval of the geometric mean of ``first / second``, resampling pairs."""
    logs = np.log(np.asarray(first, float)) - np.log(np.asarray(second, float))
    draws = np.random.default_rng(seed).integers(0, len(logs), (RESAMPLES, len(logs)))
    tail = (1 - level) / 2
    low, high = np.quantile(logs[draws].mean(axis=1), [tail, 1 - tail])
    return float(np.exp(low)), float(np.exp(high))


def head_to_head(first: Sequence[float], second: Sequence[float], *, tie: float = 0.01) -> Wins:
    """Pairs won by each side; within ``tie`` (relative) nobody wins."""
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    won = sum(r > 1 + tie for r in ratios)
    lost = sum(r < 1 / (1 + tie) for r in ratios)
    return Wins(won, lost, len(ratios) - won - lost)


def evaluations_to_share(best_so_far: Sequence[float], goal: float, share: float) -> int | None:
    """Evaluations until the best so far reaches ``share`` of ``goal``; None = never did."""
    wanted = goal * share
    return next((i for i, v in enumerate(best_so_far, start=1) if v >= wanted), None)


def performance_profile(
    results: Mapping[str, Sequence[float]], factors: Sequence[float]
) -> dict[str, list[float]]:
    """Share of the cases in which each arm is within a factor of the case's best arm.

    ``results``: speed-up by arm, cases in the same order (Dolan and More, 2002).
    """
    best = [max(case) for case in zip(*results.values(), strict=True)]
    return {
        arm: [
            sum(b <= v * factor for v, b in zip(values, best, strict=True)) / len(best)
            for factor in factors
        ]
        for arm, values in results.items()
    }


def _mean_ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in range(start, end):
            ranks[order[place]] = (start + 1 + end) / 2
        start = end
    return ranks


def _exact_p(ranks: Sequence[float], statistic: float) -> float:
    """Share of the 2^n sign patterns whose positive ranks sum to at least ``statistic``."""
    doubled = [round(2 * r) for r in ranks]  # mean ranks are multiples of one half
    ways = [1] + [0] * sum(doubled)
    for rank in doubled:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return float(sum(ways[round(2 * statistic) :]) / 2 ** len(ranks))


def _normal_p(ranks: Sequence[float], statistic: float) -> float:
    mean = math.fsum(ranks) / 2
    deviation = math.sqrt(math.fsum(r * r for r in ranks)) / 2  # tie correction is in the ranks
    z = (statistic - mean - 0.5) / deviation
    return 0.5 * math.erfc(z / math.sqrt(2))
