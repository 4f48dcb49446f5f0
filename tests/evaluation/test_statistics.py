"""Intervals against scipy, and the A/A property: equal code must come out as 1.00."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelpro.evaluation.statistics import Estimate, drift_p_value, median_ci, ratio_ci


def _singles(values: np.ndarray) -> list[np.ndarray]:
    return [np.array([v]) for v in values]


def test_median_interval_agrees_with_scipys_bootstrap() -> None:
    x = np.random.default_rng(1).lognormal(3.0, 0.2, size=60)
    ours = median_ci(_singles(x), resamples=6000)
    oracle = stats.bootstrap(
        (x,), np.median, method="percentile", n_resamples=6000, rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours.value == np.median(x)
    spread = oracle.high - oracle.low
    assert ours.low == pytest.approx(oracle.low, abs=0.12 * spread)
    assert ours.high == pytest.approx(oracle.high, abs=0.12 * spread)


@given(st.lists(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=6), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_median_equals_numpys_and_lies_in_its_interval(rounds: list[list[float]]) -> None:
    estimate = median_ci([np.array(r) for r in rounds], resamples=50)
    assert estimate.value == np.median(np.concatenate([np.array(r) for r in rounds]))
    assert estimate.low <= estimate.value <= estimate.high


def test_weighted_median_is_the_median_of_the_repeated_pool() -> None:
    from kernelpro.evaluation.statistics import _resampled_medians

    rng = np.random.default_rng(0)
    data = [rng.random(size) for size in (3, 1, 4, 2)]
    picks = rng.integers(0, 4, size=(40, 4))
    expected = [np.median(np.concatenate([data[i] for i in pick])) for pick in picks]
    assert np.allclose(_resampled_medians(data, picks), expected)


def test_identical_samples_give_exactly_one() -> None:
    rounds = [np.random.default_rng(i).random(5) + 1 for i in range(6)]
    assert ratio_ci(rounds, rounds) == Estimate(value=1.0, low=1.0, high=1.0)


def test_equal_code_with_round_noise_is_one_within_the_interval() -> None:
    """A/A: both sides share slow rounds; 95 % of the intervals must hold 1.0 (we ask for 90 %)."""
    rng = np.random.default_rng(7)
    held = 0
    for trial in range(100):
        mood = rng.normal(1.0, 0.2, size=8).clip(0.5)
        a = [m * rng.normal(100, 3, size=4) for m in mood]
        b = [m * rng.normal(100, 3, size=4) for m in mood]
        estimate = ratio_ci(a, b, seed=trial, resamples=400)
        held += estimate.low <= 1.0 <= estimate.high
    assert held >= 90


def test_one_outlier_of_100x_does_not_move_the_median() -> None:
    rounds = [np.full(4, 10.0) for _ in range(8)]
    rounds[3] = np.array([10.0, 10.0, 1000.0, 10.0])
    assert median_ci(rounds).value == 10.0
    assert median_ci(rounds).high == 10.0


def test_a_ramp_is_drift_and_noise_is_not() -> None:
    ramp = [10 + 0.5 * i for i in range(12)]
    noise = list(np.random.default_rng(0).normal(10, 1, size=12))
    assert drift_p_value(ramp) < 0.001
    assert drift_p_value(noise) > 0.05
    assert drift_p_value([1.0, 2.0]) == 1.0
    assert drift_p_value([5.0] * 10) == 1.0


def test_drift_agrees_with_scipys_kendall_tau() -> None:
    values = list(np.random.default_rng(4).normal(size=25) + np.linspace(0, 1.5, 25))
    oracle = stats.kendalltau(range(25), values, method="asymptotic").pvalue
    # scipy has no continuity correction: ours is a little larger.
    assert oracle <= drift_p_value(values) <= oracle * 1.3 + 0.01


def test_empty_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        median_ci([np.array([])])
    with pytest.raises(ValueError, match="pair up"):
        ratio_ci([np.array([1.0])], [np.array([1.0]), np.array([2.0])])
