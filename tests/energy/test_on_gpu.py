"""The meter on a real GPU: run where there is one."""

from __future__ import annotations

import random

import pytest

from kernelpro.energy.base import open_sensor
from kernelpro.energy.calibration import back_to_back
from kernelpro.energy.meter import EnergyPlan, compare, measure
from kernelpro.energy.session import Session
from kernelpro.hardware import probe
from kernelpro.hardware.known_work import copies, known_work
from kernelpro.schema.profile import Missing

pytestmark = pytest.mark.gpu
PLAN = EnergyPlan(window_s=1.2, least_windows=3, most_windows=4, warm_s=3.0, idle_s=1.5)


@pytest.fixture
def session():
    sensor = open_sensor(probe("cuda"))
    if isinstance(sensor, Missing):
        pytest.fail(f"{sensor.reason}. {sensor.remedy}")
    with Session(sensor, rng=random.Random(0)) as opened:
        yield opened


def test_the_counter_and_the_power_readings_agree(session):
    work = next(w for w in known_work(probe("cuda")) if w.kind == "dram")
    found = measure(session, "copy", back_to_back(work), PLAN)
    assert not isinstance(found, str), found
    assert found.sampled_ratio == pytest.approx(1.0, abs=0.1)
    assert found.idle_watts is not None and found.watts > 1.2 * found.idle_watts
    assert found.joules.half_width_share < 0.05


def test_twice_the_copies_take_twice_the_energy(session):
    device = probe("cuda")
    once, twice = copies(device, 1), copies(device, 2)
    found = compare(session, ("1", back_to_back(once)), ("2", back_to_back(twice)), PLAN)
    assert not isinstance(found, str), found
    assert found.energy.significant
    assert found.energy.ratio.value == pytest.approx(2.0, rel=0.05)


@pytest.mark.slow
def test_prices_of_bytes_and_flops_are_plausible():
    from kernelpro.energy.calibration import calibrate_energy

    costs, _ = calibrate_energy(probe("cuda"))
    # A GPU that has just worked keeps its clocks for seconds: idle then costs what active does
    # (H200, 2026-11-30: 123.0 W and 122.5 W), and the two differ by the meter's noise.
    assert 0 < costs.idle_w <= 1.02 * costs.active_w
    assert costs.dram_pj_per_byte is not None and 1 < costs.dram_pj_per_byte < 1000
    assert costs.pj_per_flop["float16"] < costs.pj_per_flop["float32"]
