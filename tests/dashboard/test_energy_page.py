"""What a terminal says about joules."""

from __future__ import annotations

import random
from dataclasses import replace

from rich.console import Console
from tests.energy.simulated import busy, in_turns, trace_of

from kernelpro.dashboard.energy_page import comparison_page, costs_page, front_page
from kernelpro.dashboard.pages import outcome_page
from kernelpro.energy.meter import summarise_pair
from kernelpro.schema.hardware import EnergyCosts
from kernelpro.schema.outcome import Energy
from kernelpro.testing.sample_outcome import success
from kernelpro.views.energy_view import EnergyPoint, EnergyView


def shown(page) -> str:
    console = Console(width=120, color_system=None)
    with console.capture() as out:
        console.print(page)
    return out.get()


def test_an_outcome_says_its_joules_or_why_there_are_none():
    base = success(100.0, random.Random(0), source_hash="sha256:0")
    energy = Energy(joules=1.2, ci95_j=(1.188, 1.212), average_watts=640.0, meter="nvml",
                    power_limited=True)  # fmt: skip
    page = shown(outcome_page(replace(base, energy=energy, evidence={"baseline_energy_j": 2.4})))
    assert "energy: 1.2 J a call ± 1.0%, 640 W, 0.500 of eager's, power-limited (nvml)" in page
    page = shown(outcome_page(replace(base, evidence={"energy_missing": "no counter"})))
    assert "energy: no counter" in page
    assert "energy" not in shown(outcome_page(replace(base, evidence={})))


def test_a_comparison_names_both_and_the_interval():
    windows = in_turns(["a", "b"], 3)
    trace = trace_of(busy(windows, {"a": 500.0, "b": 690.0}), windows, noise=0.2)
    page = shown(comparison_page("a.py", "b.py", "simulated", summarise_pair(trace, "a", "b")))
    assert "a.py" in page and "second over first 1.38" in page
    assert "power limit lowered the clocks" in page


def test_the_front_is_listed_fastest_first_with_eager_below():
    points = (EnergyPoint("n1", 1.5, 0.8, True, False), EnergyPoint("n2", 2.0, 1.0, True, True),
              EnergyPoint("n3", 1.2, 2.0, False, False))  # fmt: skip
    rows = shown(front_page(EnergyView(points, 2.5))).splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["n2", "n1", "eager"]
    assert "n2 *" in rows[1]


def test_prices_are_listed():
    costs = EnergyCosts(meter="m", idle_w=80.0, active_w=110.0, dram_pj_per_byte=55.0,
                        pj_per_flop={"float32": 1.25})  # fmt: skip
    page = shown(costs_page(costs))
    assert "80.0 W" in page and "55 pJ" in page and "1.25 pJ" in page and "L2" not in page
