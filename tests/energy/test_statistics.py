"""Intervals and tests are Student's; errors of the first kind come as often as they should."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.energy import statistics as s


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 15])
def test_students_distribution_agrees_with_scipy(degrees):
    stats = pytest.importorskip("scipy.stats")
    for t in (0.1, 1.0, 2.5, 12.0):
        assert s.t_cdf(t, degrees) == pytest.approx(stats.t.cdf(t, degrees), abs=1e-12)
    assert s.t_quantile(0.975, degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-6)


def test_one_value_has_no_interval_and_none_is_an_error():
    assert s.mean_interval([2.0]).high == math.inf
    with pytest.raises(ValueError):
        s.mean_interval([])


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        found = s.mean_interval(rng.normal(1.0, 0.02, size=4))
        hits += found.low <= 1.0 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_equal_kernels_differ_by_chance_in_one_case_of_twenty():
    rng = np.random.default_rng(1)
    found = [
        s.paired_ratio(rng.normal(1, 0.01, 6), rng.normal(1, 0.01, 6)).significant
        for _ in range(400)
    ]
    assert 0.02 <= sum(found) / 400 <= 0.09


def test_drift_that_hits_both_cancels():
    drift = np.linspace(1.0, 1.2, 6)
    pair = s.paired_ratio(drift, 1.03 * drift)
    assert pair.ratio.value == pytest.approx(1.03) and pair.significant


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=8))
def test_a_kernel_never_differs_from_itself(values):
    pair = s.paired_ratio(values, values)
    assert pair.p_value == 1.0 and pair.ratio.value == pytest.approx(1.0)


def test_pairs_must_pair_up():
    for first, second in (([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, -1.0], [1.0, 1.0])):
        with pytest.raises(ValueError):
            s.paired_ratio(first, second)


def test_a_straight_line_is_found():
    found = s.line([1, 2, 4], [3.0, 5.0, 9.0])
    assert (found.slope, found.intercept) == (pytest.approx(2.0), pytest.approx(1.0))
    assert found.r_squared == pytest.approx(1.0)
    with pytest.raises(ValueError):
        s.line([1, 1, 1], [1, 2, 3])
