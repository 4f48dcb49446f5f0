"""Charts: inside their frame, and every value where its axis says."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.report.charts.progress import progress_chart
from kernelpro.report.charts.roofline import roofline_chart
from kernelpro.report.charts.scales import Scale, decade_ticks, linear_ticks, ratio_ticks
from kernelpro.report.charts.timing import distributions_chart, histogram_chart, rounds_chart
from kernelpro.report.charts.tree import heat, tree_chart
from kernelpro.report.markup import element
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.latency_view import Distribution, latency_view
from kernelpro.views.progress_view import progress_view
from kernelpro.views.roofline_view import roofline_view
from kernelpro.views.run import fold
from kernelpro.views.tree_view import tree_view

positive = st.floats(1e-3, 1e6)


@given(low=positive, factor=st.floats(1.01, 1e4), share=st.floats(0, 1), log=st.booleans())
def test_scales_keep_order_and_ends(low, factor, share, log):
    scale = Scale(low, low * factor, 10.0, 200.0, log=log)
    assert scale(low) == pytest.approx(10.0)
    assert scale(low * factor) == pytest.approx(200.0)
    value = low * factor**share if log else low + share * (low * factor - low)
    assert scale(value) == pytest.approx(10 + 190 * share, abs=1e-3)


@given(high=positive)
def test_linear_ticks_are_few_and_inside(high):
    ticks = linear_ticks(high)
    assert 2 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] <= high * (1 + 1e-9)


@given(low=st.floats(1e-4, 1.0), factor=st.floats(2.0, 1e6))
def test_log_ticks_are_inside(low, factor):
    for ticks in (decade_ticks(low, low * factor), ratio_ticks(low, low * factor)):
        assert all(low * 0.999 <= t <= low * factor * 1.001 for t in ticks)


@given(low=positive, factor=st.floats(1.0, 100.0), share=st.floats(0, 1))
def test_heat_grows_with_speed(low, factor, share):
    assert heat(low * factor, low, low * factor) == 5
    assert 0 <= heat(low * factor**share, low, low * factor) <= 5


@pytest.mark.parametrize("width", [350, 834])
def test_nothing_is_drawn_outside_the_frame(width):
    run = fold(sample_events())
    roofline, latency = roofline_view(run), latency_view(run.outcome(run.best_id))
    charts = [
        progress_chart(progress_view(run), 2.7, width), roofline_chart(roofline, width),
        distributions_chart(latency.distributions, width), tree_chart(tree_view(run)),
        histogram_chart(latency.distributions[-1], 350), rounds_chart(latency.round_speedups, 350),
    ]  # fmt: skip
    for chart in charts:
        right, bottom = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', chart).groups())
        for name, value in re.findall(r'\b(c?[xy][12]?)="(-?[\d.]+)"', chart):
            limit = right if "x" in name else bottom
            assert -1 <= float(value) <= limit + 1, (name, value, chart[:80])


def test_samples_that_are_all_equal_can_be_drawn():
    flat = Distribution("candidate", 5.0, (5.0, 5.0), 5.0, 5.0, (8, *[0] * 39), 8)
    for chart in (histogram_chart(flat, 350), distributions_chart((flat,), 350)):
        assert "nan" not in chart
        assert "inf" not in chart


def test_numbers_are_short_and_finite():
    assert element("line", x1=1 / 3, x2=2.0) == '<line x1="0.33" x2="2"></line>'
    assert math.isfinite(Scale(1.0, 2.0, 0.0, 1.0)(1.5))
