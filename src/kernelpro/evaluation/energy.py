"""The referee's energy observer: joules of a candidate beside those of the eager reference.

Runs after an accepted timing and changes nothing in it. Calls are repeated back to back for
seconds with warm caches, on the values that timing left in the slots; what the candidate claims
about its speed plays no part: launches are counted by the referee and time is its own clock's.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from kernelpro.energy.base import open_sensor
from kernelpro.energy.meter import Comparison, EnergyPlan, compare
from kernelpro.energy.session import Burst, Session
from kernelpro.energy.trace import Trace, dump_trace
from kernelpro.evaluation.record import Case
from kernelpro.isolation.base import Call, Subject, SubjectFailure
from kernelpro.schema.hardware import Device
from kernelpro.schema.profile import Missing

SLOTS = (0, 1, 2)
"""Written inputs that take turns: those of the timing (``timing.SLOTS``)."""
FIRST, SECOND = "first", "second"
MOST_REPEATS = 10_000_000
MOST_TRIES, LEAST_SHARE = 3, 0.7
"""A burst shorter than this share of what was asked for is repeated at its own pace (chosen)."""


class Sustained:
    """A subject's calls without a pause, as a workload for the meter."""

    def __init__(
        self, subject: Subject, *, call_us: float, fresh: bool, slots: Sequence[int] = SLOTS
    ) -> None:
        """call_us: a first guess of one call's time; fresh: calls change their inputs."""
        self._subject, self._slots, self._fresh = subject, tuple(slots), fresh
        self._call_us = call_us

    def __call__(self, seconds: float) -> Burst:
        """As many calls as fill ``seconds`` by the last burst's pace; again, if that was so far
        off that the burst is too short (calls timed with cold caches are slower)."""
        for _ in range(MOST_TRIES):
            burst = self._burst(seconds)
            if burst.end_s - burst.start_s >= LEAST_SHARE * seconds:
                break
        return burst

    def _burst(self, seconds: float) -> Burst:
        each = round(1e6 * seconds / (self._call_us * len(self._slots)))
        repeat = min(max(1, each), MOST_REPEATS)
        block = self._subject.run(
            [Call(slot=slot, fresh_address=self._fresh, repeat=repeat) for slot in self._slots]
        )
        launches = repeat * len(self._slots)
        self._call_us = max(0.01, block.wall_us / launches)
        return Burst(block.started_s, block.started_s + block.wall_us / 1e6, launches)


def compare_energy(
    first: Sustained, second: Sustained, device: Device, plan: EnergyPlan, rng: random.Random
) -> tuple[Comparison, Trace] | Missing:
    """Both in turns, with the trace; what is missing and why if it cannot be measured.

    ``SubjectFailure`` if a subject ends meanwhile.
    """
    sensor = open_sensor(device)
    if isinstance(sensor, Missing):
        return sensor
    with Session(sensor, rng=rng) as session:
        found = compare(session, (FIRST, first), (SECOND, second), plan)
        trace = session.trace()
    return Missing(what="energy", reason=found) if isinstance(found, str) else (found, trace)


def observe(
    case: Case, eager: Sustained, candidate: Sustained, *, device: Device, plan: EnergyPlan,
    rng: random.Random,
) -> None:  # fmt: skip
    """Fill ``case.energy`` and the baseline's energy; a reason goes into the evidence instead."""
    try:
        with case.stage("energy"):
            found = compare_energy(eager, candidate, device, plan, rng)
    except SubjectFailure as failure:
        case.evidence["energy_missing"] = f"a process ended while it ran on: {failure.message}"
        return
    if isinstance(found, Missing):
        case.evidence["energy_missing"] = found.reason
        return
    comparison, trace = found
    case.energy = comparison.second.record(trace.meter)
    case.evidence |= evidence(comparison) | {"energy_trace": dump_trace(trace)}


def evidence(comparison: Comparison) -> dict[str, Any]:
    """What an outcome keeps of the comparison with eager."""
    ratio = comparison.energy.ratio
    return {
        "baseline_energy_j": comparison.first.joules.value,
        "baseline_energy_ci95_j": [comparison.first.joules.low, comparison.first.joules.high],
        "energy_ratio_to_eager": dataclasses.asdict(ratio) | {"p_value": comparison.energy.p_value},
        "energy_seconds_per_call": comparison.second.seconds_per_launch,
    }
