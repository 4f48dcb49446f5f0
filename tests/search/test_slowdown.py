"""Least energy among those that are fast enough."""

from __future__ import annotations

from kernelpro.schema.outcome import Stage, Status
from kernelpro.schema.search import Tell
from kernelpro.search.reward import ranked


def tell(name: str, speedup: float, energy_j: float | None) -> Tell:
    return Tell(ask_id=1, node_id=name, status=Status.OK, stage=Stage.DONE, speedup=speedup,
                energy_j=energy_j, baseline_energy_j=10.0)  # fmt: skip


FASTEST, NEAR, FAR = tell("fastest", 2.0, 6.0), tell("near", 1.97, 4.0), tell("far", 1.0, 2.0)


def names(**options: float) -> list[str | None]:
    return [t.node_id for t in ranked([FASTEST, NEAR, FAR], "energy", **options)]


def test_without_a_limit_least_energy_wins_however_slow():
    assert names() == ["far", "near", "fastest"]


def test_with_a_limit_the_slow_ones_come_last():
    assert names(max_slowdown=0.02) == ["near", "fastest", "far"]
    assert names(max_slowdown=0.01) == ["fastest", "far", "near"]
    assert names(max_slowdown=0.0)[0] == "fastest"


def test_energy_that_was_not_measured_falls_back_to_speed():
    unknown = [tell("a", 2.0, None), tell("b", 1.99, None)]
    assert [t.node_id for t in ranked(unknown, "energy", 0.02)] == ["a", "b"]
