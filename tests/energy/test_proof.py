"""The arithmetic of the proofs, on a simulated trace with the labels of ``benchmarks/energy``."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from tests.energy.simulated import busy, trace_of

from kernelpro.energy.trace import Window

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "energy"))

from proof import report_of

WATTS = {"ladder": 450.0, "repeat": 500.0, "first": 500.0, "second": 500.0, "more": 540.0}


@pytest.fixture(scope="module")
def report():
    rng, at_s, windows, watts = random.Random(3), 2.4, [Window("idle", 0.0, 2.0, 0)], {}

    def add(label, seconds, launches, power):
        nonlocal at_s
        at_s += rng.uniform(0.05, 0.15)
        windows.append(Window(label, at_s, at_s + seconds, launches))
        watts[label] = power
        at_s += seconds

    for rung in (1, 2, 4):
        for _ in range(2):
            add(f"ladder:copy:{rung}", 1.6, 2000 // rung, 450.0)
    for number in (1, 2, 3):
        for _ in range(3):
            add(f"repeat:copy:{number}", 1.6, 2000, 500.0)
    for _ in range(4):
        for side, launches in (("first", 2000), ("second", 2000)):
            add(f"pair:equal:{side}", 1.6, launches, 500.0)
        for side, launches in (("first", 2000), ("second", 1818)):
            add(f"pair:10 % more bytes:{side}", 1.6, launches, 500.0)
    for number in range(5):
        add(f"short:copy:{number}", 0.1, 125, 500.0)
    return report_of(trace_of(busy(windows, watts), windows, noise=0.2))


def test_a_proportional_ladder_is_seen_as_one(report):
    found = report["ladders"]["copy"]
    assert found["work"] == [1, 2, 4] and found["r_squared"] > 0.999
    assert found["spread_of_joules_per_work"] < 0.01


def test_repeats_of_the_same_kernel_hardly_vary(report):
    found = report["repeatability"]["copy"]
    assert len(found["joules"]) == 3 and found["coefficient_of_variation"] < 0.01


def test_equal_kernels_and_a_tenth_more(report):
    assert report["pairs"]["equal"]["energy"]["significant"] is False
    more = report["pairs"]["10 % more bytes"]["energy"]
    assert more["significant"] and more["ratio"] == pytest.approx(1.1, rel=0.01)


def test_readings_of_a_tenth_of_a_second_are_wrong(report):
    short = report["short_windows"]
    assert short["steady"]["readings"] > 50
    assert short["steady"]["worst_error"] > 0.5
    assert short["from_idle"]["readings"] == 5
    assert short["from_idle"]["worst_error"] > 0.2
