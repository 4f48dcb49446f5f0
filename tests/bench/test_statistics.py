"""The statistics agree with scipy and with cases known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.bench.statistics import (
    bootstrap_interval,
    evaluations_to_share,
    geometric_mean,
    head_to_head,
    performance_profile,
    signed_rank,
)

scipy_stats = pytest.importorskip("scipy.stats")

samples = st.lists(
    st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0)), min_size=1, max_size=30,
    unique_by=(lambda p: abs(p[0] - p[1]),),
)  # fmt: skip


@given(samples)
def test_exact_signed_rank_agrees_with_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    if any(a == b for a, b in pairs):
        pairs = [(a, b) for a, b in pairs if a != b]
        if not pairs:
            assert signed_rank(first, second).p == 1.0
            return
    expected = scipy_stats.wilcoxon(
        [a for a, _ in pairs], [b for _, b in pairs], alternative="greater", method="exact"
    )
    ours = signed_rank(first, second)
    assert ours.statistic == pytest.approx(expected.statistic)
    assert ours.p == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize("digits", [1, 6])
def test_large_samples_agree_with_scipy_ties_included(digits: int) -> None:
    draw = np.random.default_rng(1)
    first = np.round(draw.lognormal(0.1, 0.5, 200), digits)
    second = np.round(draw.lognormal(0.0, 0.5, 200), digits)
    # Differences of rounded numbers are equal only after rounding again.
    difference = np.round(first - second, digits)
    expected = scipy_stats.wilcoxon(
        difference, alternative="greater", method="asymptotic", correction=True
    )
    ours = signed_rank(list(difference), [0.0] * 200)
    assert ours.statistic == pytest.approx(expected.statistic)
    assert ours.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_exact_with_ties_by_hand() -> None:
    # |d| = 1, 1, 2: ranks 1.5, 1.5, 3; W+ = 4.5 (one of the ones is negative).
    # Sums >= 4.5 among the 8 sign patterns: 3+1.5 twice, 3+1.5+1.5 once.
    assert signed_rank([1.0, -1.0, 2.0], [0.0, 0.0, 0.0]) == (4.5, 3, 3 / 8)
    assert signed_rank([1.0], [1.0]).p == 1.0


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    for wrong in ([], [1.0, 0.0], [-1.0]):
        with pytest.raises(ValueError, match="positive"):
            geometric_mean(wrong)


def test_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(3)
    covered = 0
    for trial in range(60):
        first = draw.lognormal(0.2, 0.4, 40)
        low, high = bootstrap_interval(first, np.ones(40), seed=trial)
        covered += low <= np.exp(0.2) <= high
    assert covered >= 51
    assert bootstrap_interval([2.0, 2.0], [1.0, 1.0]) == pytest.approx((2.0, 2.0))


def test_head_to_head_and_goals() -> None:
    assert head_to_head([2.0, 1.0, 1.0], [1.0, 2.0, 1.001]) == (1, 1, 1)
    assert evaluations_to_share([1.0, 1.5, 1.9, 2.0], 2.0, 0.95) == 3
    assert evaluations_to_share([1.0], 2.0, 0.95) is None


def test_performance_profile() -> None:
    profile = performance_profile({"a": [2.0, 1.0], "b": [1.0, 1.0]}, [1.0, 2.0])
    assert profile == {"a": [1.0, 1.0], "b": [0.5, 1.0]}
