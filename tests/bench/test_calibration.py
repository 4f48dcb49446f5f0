"""Parameters that generated the data are found again, and what the data lack is said."""

from __future__ import annotations

import math
import random

import pytest

from kernelpro.bench.calibration import Start, Step, calibrate
from kernelpro.bench.simulation import Calibration


def start(problem: str, n: int, log: float | None) -> Start:
    return Start(problem=problem, source_hash=f"{problem}{n}", log_speedup=log)


def step(problem: str, n: int, move: str, effect: float | None, **fields: object) -> Step:
    given = {"depth": 1, "advised": False, **fields}
    return Step(problem=problem, parent_hash="p", source_hash=f"{problem}{move}{n}", move=move,
                effect=effect, **given)  # type: ignore[arg-type] # fmt: skip


def test_generated_parameters_are_found_again() -> None:
    draw = random.Random(3)
    steps = []
    for problem in range(40):
        for move in range(10):
            own = draw.gauss(-0.1, 0.3)
            steps += [
                step(f"q{problem}", n, f"m{move}", own + draw.gauss(0.0, 0.2 * math.sqrt(2)),
                     depth=2)
                for n in range(4)
            ]  # fmt: skip
    starts = [start(f"q{p}", n, draw.gauss(0.5, 0.4)) for p in range(40) for n in range(6)]
    found = calibrate(starts, steps, relative_widths=[math.exp(4 * 0.01)] * 9,
                      best={f"q{p}": math.exp(1.0 + p / 40) for p in range(40)})  # fmt: skip
    c = found.calibration
    assert c.start_mean == pytest.approx(0.5, abs=0.06)
    assert c.start_sd == pytest.approx(0.4, abs=0.06)
    assert c.move_mean == pytest.approx(-0.1, abs=0.04)
    assert c.move_sd == pytest.approx(0.3, abs=0.04)
    assert c.interaction_sd == pytest.approx(0.2, abs=0.02)
    assert c.noise == pytest.approx(0.0102, abs=0.001)
    assert c.ceiling_mean == pytest.approx(1.49, abs=0.01)
    assert (c.designs, c.moves, c.failure_rate) == (6, 10, 0.0)
    assert found.kept == ("advice", "persistent_share", "repair_rate")
    assert found.observations["move_sd"] == 1600


def test_repeated_observations_count_once_and_failures_are_counted() -> None:
    starts = [start("q", 0, 0.1), start("q", 0, 0.1), start("q", 1, None), start("q", 2, 0.3)]
    steps = [
        step("q", 0, "a", 0.2, advised=True), step("q", 1, "a", -0.2, advised=True),
        step("q", 2, "b", None), step("q", 3, "b", 0.1), step("q", 3, "b", 0.1),
    ]  # fmt: skip
    found = calibrate(starts, steps, relative_widths=[], best={"q": 2.0},
                      repeats=[(True, True), (True, False), (False, False)])  # fmt: skip
    c = found.calibration
    assert c.failure_rate == pytest.approx(2 / 7)
    assert found.observations["failure_rate"] == 7
    assert c.persistent_share == 0.5
    assert c.advice == 0.0, "advised and other moves gain equally often"
    assert c.noise == Calibration().noise and "noise" in found.kept


def test_without_data_everything_keeps_its_chosen_value() -> None:
    found = calibrate([], [], relative_widths=[], best={})
    assert found.calibration == Calibration()
    assert not found.observations
