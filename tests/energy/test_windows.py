"""A slow counter gives the right power if, and only if, it is read at its steps."""

from __future__ import annotations

import pytest
from tests.energy.simulated import busy, trace_of

from kernelpro.energy.trace import Reading, Trace, Window
from kernelpro.energy.windows import find_edges, unaligned_joules, window_power


@pytest.mark.parametrize("phase_s", [0.0, 0.01, 0.05, 0.099])
@pytest.mark.parametrize("watts", [150.0, 420.0, 690.0])
def test_power_is_exact_whatever_the_phase(phase_s, watts):
    window = Window("work", 1.0, 2.5, 100)
    power = window_power(
        trace_of(busy([window], {"work": watts}), [window], phase_s=phase_s), window
    )
    assert power.watts == pytest.approx(watts, rel=0.01)
    assert abs(power.watts / watts - 1) <= power.error_share + 1e-3
    assert power.sampled_watts == pytest.approx(watts, rel=1e-6)


def test_a_short_unaligned_reading_is_wrong_by_a_third_and_more():
    window = Window("work", 1.0, 2.5, 100)
    errors = []
    for phase in range(10):
        trace = trace_of(busy([window], {"work": 600.0}), [window], phase_s=phase / 100)
        joules = unaligned_joules(trace, 1.0, 1.1)
        errors.append(abs(joules / 60.0 - 1))
    assert max(errors) > 0.33


def test_a_window_with_too_few_steps_says_so():
    window = Window("work", 1.0, 1.4, 100)
    said = window_power(trace_of(busy([window], {"work": 500.0}), [window]), window)
    assert isinstance(said, str) and "at least 4 are needed" in said


def test_a_counter_that_stands_still_is_no_power():
    readings = tuple(Reading(i / 100, energy_j=5.0) for i in range(300))
    window = Window("work", 0.5, 2.5, 10)
    assert "moved 0 times" in window_power(Trace("m", "d", readings, (window,)), window)


def test_a_counter_that_runs_backwards_is_no_power():
    readings = tuple(Reading(i / 100, energy_j=1000.0 - i) for i in range(300))
    window = Window("work", 0.5, 2.5, 10)
    assert "backwards" in window_power(Trace("m", "d", readings, (window,)), window)


def test_the_first_reading_is_no_step_and_the_time_of_a_step_is_bounded():
    readings = [Reading(0.0, 1.0), Reading(0.1, 1.0), Reading(0.2, 3.0), Reading(0.3, 3.0)]
    (edge,) = find_edges(readings)
    assert (edge.t_s, edge.energy_j, edge.slack_s) == (
        pytest.approx(0.15),
        3.0,
        pytest.approx(0.05),
    )


@pytest.mark.parametrize(
    ("limits", "watts", "limit_w", "share"),
    [
        ((), 500.0, 700.0, 0.0),
        (("SwPowerCap",), 500.0, 700.0, 1.0),
        (("SwThermalSlowdown",), 500.0, 700.0, 0.0),
        (None, 500.0, 700.0, None),
        (None, 690.0, 700.0, 1.0),
        (None, 690.0, None, None),
    ],
)
def test_power_limits_are_seen_by_reason_or_by_power(limits, watts, limit_w, share):
    window = Window("work", 1.0, 2.5, 100)
    trace = trace_of(
        busy([window], {"work": watts}), [window], limits=limits, power_limit_w=limit_w
    )
    assert window_power(trace, window).limited_share == share
