"""From a result to a number the search can compare, and from many results to a winner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kernelpro.schema.outcome import Status
from kernelpro.schema.search import Objective, Tell

GAIN_FLOOR = 0.1
"""Gains below this count the same (PAPER section 4)."""
WRONG_REWARD = -2.0
"""A candidate that ran but computed the wrong result (PAPER section 4)."""
FAILURE_REWARD = -3.0
"""Any other failure (PAPER section 4)."""

_ENERGY_EXPONENT = {"latency": 0, "lexicographic": 0, "energy": 1, "edp": 1, "ed2p": 1}
_SPEED_EXPONENT = {"latency": 1, "lexicographic": 1, "energy": 0, "edp": 1, "ed2p": 2}


def accepted(tell: Tell) -> bool:
    """True if the told candidate was accepted and carries a speed-up."""
    return tell.status is Status.OK and tell.speedup is not None


def energy_gain(tell: Tell) -> float | None:
    """Baseline energy over the candidate's; None if either was not measured."""
    if not tell.energy_j or not tell.baseline_energy_j:
        return None
    return tell.baseline_energy_j / tell.energy_j


def gain(tell: Tell, objective: Objective) -> float:
    """Improvement of an accepted candidate over the baseline in ``objective``; 1.0 = none.

    Energy that was not measured is taken to fall with time, as at constant power: the objective
    then degrades to latency and never to zero.
    """
    assert tell.speedup is not None
    energy = energy_gain(tell)
    speed = tell.speedup ** _SPEED_EXPONENT[objective]
    return float(
        speed * (tell.speedup if energy is None else energy) ** _ENERGY_EXPONENT[objective]
    )


def reward(
    tell: Tell, objective: Objective, *, wrong: float = WRONG_REWARD,
    failure: float = FAILURE_REWARD,
) -> float:  # fmt: skip
    """``ln(max(gain, 0.1))`` for an accepted candidate; ``wrong`` or ``failure`` else."""
    if accepted(tell):
        return math.log(max(gain(tell, objective), GAIN_FLOOR))
    return wrong if tell.status is Status.WRONG_RESULT else failure


def tied(one: Tell, other: Tell) -> bool:
    """True if measurement noise does not tell two accepted candidates apart in speed.

    They tie when either speed-up lies inside the other's 95 % confidence interval. A candidate
    without an interval is taken as exact.
    """
    assert one.speedup is not None and other.speedup is not None
    return _inside(one.speedup, other) or _inside(other.speedup, one)


def surely(tell: Tell) -> float:
    """Lower end of the 95 % interval of an accepted candidate's speed-up; the speed-up itself if
    there is no interval."""
    assert tell.speedup is not None
    return tell.speedup_ci95[0] if tell.speedup_ci95 else tell.speedup


def _inside(speedup: float, tell: Tell) -> bool:
    low, high = tell.speedup_ci95 or (tell.speedup, tell.speedup)
    return low is not None and high is not None and low <= speedup <= high


def ranked(
    tells: Iterable[Tell], objective: Objective, max_slowdown: float | None = None
) -> list[Tell]:
    """Accepted candidates, best first; equal ones in order of their node ids.

    ``lexicographic``: speed first; among those that tie with the fastest of the rest, the least
    energy (an unmeasured energy comes last). ``max_slowdown``: those whose latency is above the
    fastest one's by more than this share (0.02 = 2 %) come after all others.
    """
    known = [t for t in tells if accepted(t)]
    least_speed = 0.0
    if max_slowdown is not None:
        least_speed = max((t.speedup or 0.0 for t in known), default=0.0) / (1.0 + max_slowdown)
    rest = sorted(
        known,
        key=lambda t: ((t.speedup or 0.0) < least_speed, -gain(t, objective), t.node_id or ""),
    )
    if objective != "lexicographic":
        return rest
    order: list[Tell] = []
    while rest:
        first = rest[0]
        order += sorted((t for t in rest if tied(t, first)), key=_energy_order)
        rest = [t for t in rest if not tied(t, first)]
    return order


def _energy_order(tell: Tell) -> tuple[bool, float]:
    measured = tell.energy_j is not None
    return (not measured, tell.energy_j if measured and tell.energy_j is not None else 0.0)


def pareto_front(tells: Sequence[Tell]) -> list[Tell]:
    """Accepted candidates that no other beats in both speed-up and energy, fastest first."""
    measured = [t for t in tells if accepted(t) and t.energy_j is not None]
    front: list[Tell] = []
    least = math.inf
    for tell in sorted(measured, key=lambda t: (-(t.speedup or 0.0), t.energy_j or 0.0)):
        if tell.energy_j is not None and tell.energy_j < least:
            front.append(tell)
            least = tell.energy_j
    return front
