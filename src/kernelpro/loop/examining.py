"""Evaluation and profile of a candidate: the pair of steps, and the examiner of this process."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import Future
from typing import Any, TypeVar

from kernelpro.errors import MachineError
from kernelpro.executors.base import Place, ran_on
from kernelpro.loop.base import Examined, Profiler, Referee
from kernelpro.schema.candidate import Candidate
from kernelpro.schema.config import CheckLevel, RunConfig
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Missing, Profile
from kernelpro.stages import entering

RAN_ON = "ran_on"
"""Key of ``Outcome.environment`` that says where and when an evaluation ran."""

Value = TypeVar("Value")


class InProcess:
    """Examines one candidate at a time, in the controller's own process."""

    overlaps = False

    def __init__(
        self, referee: Referee, profiler: Profiler, config: RunConfig, place: Place | None = None
    ) -> None:
        """place: what the record of a result says about where it ran; None = nothing."""
        self._place = place
        self._referee = referee
        self._profiler = profiler
        self._config = config

    def examine(self, candidate: Candidate) -> Future[Examined]:
        """See :class:`Examiner`; returns when it is done."""
        began = time.time()
        outcome, profile = examined(
            self._referee, self._profiler if wants_profile(self._config) else None, candidate,
            checks=self._config.evaluation.checks, device=self._config.device,
        )  # fmt: skip
        return finished(Examined(self._placed(outcome, began, time.time()), profile))

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        """See :class:`Examiner`; all of them share one record of where and when."""
        began = time.time()
        outcomes = self._referee.remeasure(sources)
        now = time.time()
        return [self._placed(outcome, began, now) for outcome in outcomes]

    def close(self) -> None:
        """End the referee's processes."""
        self._referee.close()

    def _placed(self, outcome: Outcome, began: float, now: float) -> Outcome:
        if self._place is None:
            return outcome
        where = ran_on(
            self._place, attempt=1, seconds=now - began, submitted_at=began, received_at=now
        )
        return placed(outcome, where)


def examined(
    referee: Referee, profiler: Profiler | None, candidate: Candidate, *, checks: CheckLevel,
    device: str,
) -> Examined:  # fmt: skip
    """The outcome and, if it is accepted and there is a profiler, what the profiler saw."""
    # No seed: the referee draws one that no candidate can foresee, and records it.
    outcome = referee.evaluate(candidate.proposal.source, checks=checks)
    if not outcome.ok or profiler is None:
        return Examined(outcome, None)
    entering("profile")
    try:
        return Examined(outcome, profiler(candidate, outcome))
    except MachineError as error:
        lacking = Missing(what="profile", reason=str(error))
        return Examined(outcome, Profile(device=device, kernels=(), missing=(lacking,)))


def placed(outcome: Outcome, where: dict[str, Any]) -> Outcome:
    """The outcome, saying where it was found."""
    return dataclasses.replace(outcome, environment={**outcome.environment, RAN_ON: where})


def wants_profile(config: RunConfig) -> bool:
    """False in the arm ``none``: nobody may read a profile."""
    return config.arm != "none"


def finished(value: Value) -> Future[Value]:
    """A future that is done."""
    future: Future[Value] = Future()
    future.set_result(value)
    return future
