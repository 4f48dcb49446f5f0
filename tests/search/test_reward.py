"""Rewards follow the paper; ties follow the noise; the front keeps what nothing beats."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Objective, Tell
from kernelpro.search.incumbent import Incumbent
from kernelpro.search.reward import gain, pareto_front, ranked, reward, tied

from .simulate import failed, ok


def measured(
    name: str, speedup: float, *, noise: float = 0.0, energy_j: float | None = None
) -> Tell:
    ci = (speedup - noise, speedup + noise)
    baseline = None if energy_j is None else 8.0
    return ok(1, name, speedup, speedup_ci95=ci, energy_j=energy_j, baseline_energy_j=baseline)


def test_paper_rewards() -> None:
    assert reward(measured("a", 2.0), "latency") == pytest.approx(math.log(2))
    assert reward(measured("a", 0.01), "latency") == pytest.approx(math.log(0.1))
    assert reward(failed(1, "a"), "latency") == -2.0
    for status in set(Status) - {Status.OK, Status.WRONG_RESULT}:
        assert reward(failed(1, "a", status, Stage.BUILD), "latency") == -3.0


def test_energy_objectives() -> None:
    tell = measured("a", 2.0, energy_j=2.0)
    gains = {o: gain(tell, o) for o in ("latency", "energy", "edp", "ed2p", "lexicographic")}
    assert gains == {"latency": 2.0, "energy": 4.0, "edp": 8.0, "ed2p": 16.0, "lexicographic": 2.0}


@pytest.mark.parametrize(("objective", "expected"), [("energy", 2.0), ("edp", 4.0)])
def test_unmeasured_energy_falls_with_time(objective: Objective, expected: float) -> None:
    assert gain(measured("a", 2.0), objective) == expected


def test_ties_by_interval() -> None:
    assert tied(measured("a", 1.50, noise=0.05), measured("b", 1.53, noise=0.05))
    assert tied(measured("a", 1.50, noise=0.01), measured("b", 1.53, noise=0.05))
    assert not tied(measured("a", 1.50, noise=0.01), measured("b", 1.53, noise=0.01))
    assert not tied(ok(1, "a", 1.5), ok(2, "b", 1.6))


def test_lexicographic_breaks_ties_by_energy_only_within_noise() -> None:
    fast = measured("fast", 2.00, noise=0.05, energy_j=3.0)
    frugal = measured("frugal", 1.98, noise=0.05, energy_j=2.0)
    slow = measured("slow", 1.50, noise=0.05, energy_j=0.5)
    blind = measured("blind", 2.01, noise=0.05)
    order = [t.node_id for t in ranked([slow, fast, blind, frugal], "lexicographic")]
    assert order == ["frugal", "fast", "blind", "slow"]
    assert ranked([slow, fast, frugal], "latency")[0] is fast


tells = st.lists(
    st.builds(
        lambda speedup, noise, energy: (speedup, noise, energy),
        st.floats(0.5, 4.0), st.floats(0.0, 0.3), st.none() | st.floats(0.5, 9.0),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(tells, st.sampled_from(["latency", "energy", "lexicographic"]))
def test_the_incumbent_does_not_depend_on_the_order(
    values: list[tuple[float, float, float | None]], objective: Objective
) -> None:
    told = [measured(f"n{i}", s, noise=n, energy_j=e) for i, (s, n, e) in enumerate(values)]
    winners = set()
    for order in itertools.permutations(told) if len(told) <= 4 else (told, told[::-1]):
        incumbent = Incumbent(objective)
        for tell in order:
            incumbent.add(tell)
        winners.add(incumbent.best())
    assert winners == {ranked(told, objective)[0].node_id}


@given(tells)
def test_pareto_front_is_what_nothing_beats(
    values: list[tuple[float, float, float | None]],
) -> None:
    told = [measured(f"n{i}", s, energy_j=e) for i, (s, _, e) in enumerate(values)]
    front = pareto_front(told)
    known = [t for t in told if t.energy_j is not None]
    assert bool(front) == bool(known)
    for tell in known:
        assert any(f.speedup >= tell.speedup and f.energy_j <= tell.energy_j for f in front), (
            "everything is covered by the front"
        )
    for a, b in itertools.permutations(front, 2):
        assert not (a.speedup >= b.speedup and a.energy_j <= b.energy_j)
