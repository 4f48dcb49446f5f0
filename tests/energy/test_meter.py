"""Energy per launch from simulated counters; and the session over a real clock."""

from __future__ import annotations

import random
import time

import pytest
from tests.energy.simulated import busy, in_turns, trace_of

from kernelpro.energy.meter import EnergyPlan, compare, measure, summarise, summarise_pair
from kernelpro.energy.session import Burst, Session
from kernelpro.energy.trace import Reading, Window
from kernelpro.errors import MachineError
from kernelpro.schema.codec import from_jsonable, to_jsonable
from kernelpro.schema.outcome import Energy


def test_joules_per_launch_with_idle_power_apart():
    windows = in_turns(["work"], 4, seconds=1.5, launches=3000)
    found = summarise(trace_of(busy(windows, {"work": 600.0}), windows, noise=0.3), "work")
    per_launch_s = 1.5 / 3000
    assert found.joules.low <= 600.0 * per_launch_s <= found.joules.high
    assert found.dynamic_joules.value == pytest.approx(500.0 * per_launch_s, rel=0.02)
    assert found.idle_watts == pytest.approx(100.0, rel=0.02)
    assert found.joules.half_width_share < 0.02
    assert found.sampled_ratio == pytest.approx(1.0, rel=0.01)
    assert found.power_limited is False and len(found.windows) == 4


def test_a_ladder_of_work_is_proportional():
    from kernelpro.energy.statistics import line

    windows = [Window("idle", 0.0, 2.0, 0)]
    for step, work in enumerate((1, 2, 4, 8)):
        windows += [Window(str(work), 3.0 + 2 * step, 4.5 + 2 * step, 4000 // work)]
    trace = trace_of(busy(windows, {str(w): 450.0 for w in (1, 2, 4, 8)}), windows)
    found = [summarise(trace, str(w)).joules.value for w in (1, 2, 4, 8)]
    fit = line([1, 2, 4, 8], found)
    assert fit.r_squared > 0.9999 and abs(fit.intercept) < 0.02 * fit.slope


def test_equal_kernels_are_equal_and_a_tenth_more_is_seen():
    windows = in_turns(["a", "same", "more"], 6)
    watts = {"a": 500.0, "same": 500.0, "more": 550.0}
    trace = trace_of(busy(windows, watts), windows, noise=0.5)
    assert not summarise_pair(trace, "a", "same").energy.significant
    more = summarise_pair(trace, "a", "more")
    assert more.energy.significant
    assert more.energy.ratio.low <= 1.1 <= more.energy.ratio.high
    assert more.time.ratio.value == pytest.approx(1.0)


def test_without_idle_windows_dynamic_energy_is_missing_not_zero():
    windows = in_turns(["work"], 3)[1:]
    found = summarise(trace_of(busy(windows, {"work": 400.0}), windows), "work")
    assert found.dynamic_joules is None and "not known" in found.notes[0]


def test_what_was_not_measured_is_a_sentence():
    windows = in_turns(["work"], 2)
    trace = trace_of(busy(windows, {"work": 400.0}), windows)
    assert summarise(trace, "other") == "no window was measured"
    assert summarise_pair(trace, "work", "other") == "no window was measured"


def test_the_record_carries_it_all_and_survives_json():
    windows = in_turns(["work"], 3)
    record = summarise(trace_of(busy(windows, {"work": 690.0}), windows), "work").record(
        "simulated"
    )
    assert record.power_limited is None or record.power_limited is True
    assert from_jsonable(Energy, to_jsonable(record)) == record


class QuickCounter:
    """Test double: a counter of the real clock, updated 200 times a second."""

    meter, device, power_limit_w = "double", "none", None

    def __init__(self, watts=100.0, fails_after=None):
        self.watts, self.fails_after, self.closed, self.asked = watts, fails_after, False, 0

    def energy_j(self):
        self.asked += 1
        if self.fails_after is not None and self.asked > self.fails_after:
            raise OSError("the driver went away")
        return round(time.perf_counter() * 200) / 200 * self.watts

    def state(self):
        return Reading(time.perf_counter(), power_w=self.watts)

    def close(self):
        self.closed = True


def sleeper(each_s):
    """Launches of ``each_s`` one after the other; a busy machine wakes it up late but once."""

    def work(seconds):
        start = time.perf_counter()
        time.sleep(seconds)
        end = time.perf_counter()
        return Burst(start, end, round((end - start) / each_s))

    return work


QUICK = EnergyPlan(
    window_s=0.45, least_windows=2, most_windows=2, idle_s=0.4, idle_rest_s=0.0, warm_s=0.1
)


def test_a_session_measures_a_real_workload():
    sensor = QuickCounter()
    with Session(sensor, rng=random.Random(0), poll_s=0.001, update_s=0.005) as session:
        found = measure(session, "work", sleeper(0.005), QUICK)
    assert found.watts == pytest.approx(100.0, rel=0.05)
    assert found.joules.value == pytest.approx(100.0 * found.seconds_per_launch, rel=0.05)
    assert sensor.closed


def test_a_comparison_takes_turns():
    with Session(QuickCounter(), rng=random.Random(0), poll_s=0.001, update_s=0.005) as session:
        found = compare(session, ("a", sleeper(0.004)), ("b", sleeper(0.008)), QUICK)
        labels = [w.label for w in session.trace().windows]
    assert labels[-4:] == ["a", "b", "b", "a"]
    assert found.energy.ratio.value == pytest.approx(2.0, rel=0.2)


def test_a_sensor_that_dies_is_the_machines_trouble():
    with (
        Session(QuickCounter(fails_after=20), rng=random.Random(0), poll_s=0.001) as session,
        pytest.raises(MachineError, match="driver went away"),
    ):
        session.idle(0.3)
