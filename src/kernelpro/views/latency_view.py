"""Timing evidence of one outcome: distributions on one axis, and the ratio of each round."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.outcome import Latency, Outcome


class Distribution(NamedTuple):
    """The samples of one side, binned."""

    name: str
    """``candidate``, ``eager``, ``compile`` ..."""
    median_us: float
    ci95_us: tuple[float, float]
    low_us: float
    high_us: float
    counts: tuple[int, ...]
    """Samples per bin of equal width from ``low_us`` to ``high_us``."""
    samples: int


class LatencyView(NamedTuple):
    """Baselines first, the candidate last."""

    distributions: tuple[Distribution, ...]
    round_speedups: tuple[float, ...]
    """Eager over candidate, round by round of the interleaved measurement."""


def latency_view(outcome: Outcome, *, bins: int = 40) -> LatencyView | None:
    """The timing evidence, or None if the candidate was not timed."""
    if outcome.latency is None:
        return None
    sides = [*outcome.baselines.items(), ("candidate", outcome.latency)]
    eager = outcome.baselines.get("eager")
    rounds = zip(eager.rounds, outcome.latency.rounds, strict=False) if eager else ()
    return LatencyView(
        distributions=tuple(distribution(name, latency, bins) for name, latency in sides),
        round_speedups=tuple(base / own for base, own in rounds if own > 0),
    )


def warnings_of(outcome: Outcome) -> tuple[str, ...]:
    """The referee's own remarks on its measurement."""
    said = outcome.evidence.get("warnings", ())
    return tuple(str(w) for w in said) if isinstance(said, list | tuple) else ()


def distribution(name: str, latency: Latency, bins: int) -> Distribution:
    """``latency``'s samples in ``bins`` equal bins between the smallest and the largest."""
    low, high = min(latency.samples), max(latency.samples)
    counts = [0] * bins
    for sample in latency.samples:
        place = int((sample - low) / (high - low) * bins) if high > low else 0
        counts[min(place, bins - 1)] += 1
    return Distribution(
        name=name, median_us=latency.median_us, ci95_us=latency.ci95_us, low_us=low, high_us=high,
        counts=tuple(counts), samples=len(latency.samples),
    )  # fmt: skip
