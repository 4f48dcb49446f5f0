"""The simulated landscape is fixed by its seed and behaves as its parameters say."""

from __future__ import annotations

import math
import statistics

import pytest

from kernelpro.bench.simulation import (
    Calibration,
    Landscape,
    SimulatedWriter,
    State,
    simulate,
    simulate_on,
    toggled,
)
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.search import Ask, Decision


def config(**changes: object) -> RunConfig:
    fields: dict[str, object] = {"device": "cpu", "budget": Budget(evaluations=20)}
    return RunConfig(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_run() -> None:
    assert simulate(config(seed=4), 7) == simulate(config(seed=4), 7)
    assert simulate(config(seed=5), 7) != simulate(config(seed=4), 7)
    assert simulate(config(seed=4), 8) != simulate(config(seed=4), 7)


def test_moves_have_the_gains_they_are_calibrated_to() -> None:
    effects = [
        Landscape(seed, Calibration(ceiling_mean=99.0)).effect(State(0), move)
        for seed in range(200)
        for move in range(5)
    ]
    assert statistics.mean(effects) == pytest.approx(0.0, abs=0.03)
    assert sum(e > math.log(1.5) for e in effects) / len(effects) == pytest.approx(0.08, abs=0.03)
    gains = [math.exp(e) for e in effects if e > 0]
    assert statistics.mean(gains) == pytest.approx(1.28, abs=0.06)


def test_failures_that_persist_depend_on_the_conditions_alone() -> None:
    landscape = Landscape(1, Calibration(failure_rate=0.5, persistent_share=1.0))
    answers = {
        (moves, move): landscape.always_fails(State(0, frozenset(moves)), move)
        for moves in ((), (1,), (1, 2)) for move in range(10)
    }  # fmt: skip
    assert 0 < sum(answers.values()) < len(answers)
    assert all(landscape.always_fails(State(0, frozenset(s)), m) == v
               for (s, m), v in answers.items())  # fmt: skip
    assert toggled(toggled(State(0), 3), 3) == State(0)


def test_the_trace_covers_the_budget_and_never_loses_its_best() -> None:
    noiseless = Calibration(noise=0.0)
    for search in ("mcts", "greedy", "beam", "best-of-n", "random"):
        trace = simulate(config(search=search), 3, noiseless)
        assert len(trace.best_so_far) == 20
        assert trace.final >= 1.0
        working = [v for v in trace.best_so_far if v != 1.0]
        assert working == sorted(working)


@pytest.mark.parametrize("repeats", [False, True])
def test_a_working_candidate_is_charged_once_unless_repeats_are_allowed(repeats: bool) -> None:
    landscape = Landscape(2, Calibration(designs=3, moves=2, failure_rate=0.0, repeats=repeats))
    writer = SimulatedWriter(landscape, guided=False, seed=0)
    states = []
    for number in range(1, 40):
        ask = Ask(id=number, parent_id=None, mode="initial", decision=Decision())
        step = writer.propose(ask, None, set())
        if step is not None:
            states.append(step.state)
            writer.seen(step.state)
    assert len(set(states)) == 3
    assert len(states) == (39 if repeats else 3)


def test_the_trace_says_what_the_winner_is() -> None:
    landscape = Landscape(3, Calibration(noise=0.0))
    trace = simulate_on(config(), landscape)
    assert trace.winner is not None
    assert trace.best_so_far[-1] == pytest.approx(math.exp(landscape.log_speedup(trace.winner)))
    hopeless = Landscape(3, Calibration(failure_rate=1.0, persistent_share=0.0, repair_rate=0.0))
    assert simulate_on(config(), hopeless).winner is None


def test_one_landscape_can_serve_several_runs() -> None:
    landscape = Landscape(7, Calibration())
    assert simulate_on(config(seed=4), landscape) == simulate(config(seed=4), 7)


def test_memory_stops_repeated_failures() -> None:
    fragile = Calibration(failure_rate=0.6, persistent_share=0.9)
    with_memory, without = (
        sum(simulate(config(memory=memory, seed=s), s, fragile).repeated_failures
            for s in range(40))
        for memory in (True, False)
    )  # fmt: skip
    assert without >= 20
    assert with_memory <= 0.2 * without
