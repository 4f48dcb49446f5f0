"""Joules of real processes that really run on; only the sensor is a double (see its docstring)."""

from __future__ import annotations

import dataclasses
import time

import pytest
from candidates import HONEST, candidate
from problems_for_tests import LINEAR
from test_referee import QUICK

from kernelpro.energy.meter import EnergyPlan
from kernelpro.energy.trace import Reading, load_trace
from kernelpro.errors import UserError
from kernelpro.evaluation import energy
from kernelpro.evaluation.referee import Referee
from kernelpro.hardware import probe
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.outcome import Outcome, Status
from kernelpro.schema.profile import Missing

PLAN = EnergyPlan(
    window_s=0.6, least_windows=2, most_windows=2, idle_s=0.6, idle_rest_s=0.0, warm_s=0.1
)


class SteadyCounter:
    """Test double: 50 W by the real clock, whatever runs. It shows how launches are counted and
    windows marked; it says nothing about any processor's energy."""

    meter, device, power_limit_w = "double", "none", None

    def energy_j(self):
        return round(time.perf_counter() * 100) / 100 * 50.0

    def state(self):
        return Reading(time.perf_counter())

    def close(self):
        pass


@pytest.fixture(scope="module")
def referee(tmp_path_factory):
    # A burst has as many calls as fill its window at the pace of the one before: on a machine that
    # others share, a later one may take ten times as long.
    config = dataclasses.replace(QUICK, energy=True, run_timeout_s=60.0)
    cache = tmp_path_factory.mktemp("cache")
    with Referee(LINEAR, probe("cpu"), config, cache_root=cache) as made:
        yield made


@pytest.fixture
def metered(referee, monkeypatch):
    monkeypatch.setattr(energy, "open_sensor", lambda device: SteadyCounter())
    monkeypatch.setattr("kernelpro.evaluation.referee.FAST", PLAN)
    return referee


def test_an_accepted_candidate_carries_its_energy_and_the_baselines(metered):
    outcome = metered.evaluate(HONEST["torch"])
    assert outcome.status is Status.OK, outcome.message
    assert outcome.energy is not None, outcome.evidence.get("energy_missing")
    seconds = outcome.evidence["energy_seconds_per_call"]
    assert outcome.energy.joules == pytest.approx(50.0 * seconds, rel=0.1)
    assert outcome.energy.meter == "double" and len(outcome.energy.windows_j) == 2
    assert outcome.evidence["baseline_energy_j"] > 0
    trace = load_trace(outcome.evidence["energy_trace"])
    assert {w.label for w in trace.windows} >= {"idle", "first", "second"}
    assert loads(Outcome, dumps(outcome)) == outcome
    assert outcome.seconds["energy"] > 2.0


def test_at_constant_power_energy_goes_with_time(metered):
    slow = candidate("time.sleep(0.002)\nreturn self.right(x)")
    comparison, trace = metered.compare_energy([HONEST["torch"], slow], PLAN)
    assert comparison.energy.ratio.value == pytest.approx(comparison.time.ratio.value, rel=0.1)
    assert all(window.launches >= 3 for window in (*trace.of("first"), *trace.of("second")))


def test_a_candidate_that_is_not_accepted_has_no_energy(metered):
    wrong = candidate("return self.right(x) + 1")
    outcome = metered.evaluate(wrong)
    assert outcome.status is Status.WRONG_RESULT and outcome.energy is None
    with pytest.raises(UserError, match="not accepted"):
        metered.compare_energy([wrong], PLAN)


def test_without_a_counter_the_outcome_says_why(referee, monkeypatch):
    lacking = Missing(what="energy", reason="no counter here", remedy="")
    monkeypatch.setattr(energy, "open_sensor", lambda device: lacking)
    outcome = referee.evaluate(HONEST["torch"])
    assert outcome.ok and outcome.energy is None
    assert outcome.evidence["energy_missing"] == "no counter here"
    assert "baseline_energy_j" not in outcome.evidence
