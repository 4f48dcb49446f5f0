"""The two baselines: the reference as written, always; under torch.compile, once per run.

One warm eager process serves every evaluation; it is started again if it has died. A compiled
baseline that fails is a remark, not an error.
"""

from __future__ import annotations

import random
import secrets

from kernelpro.errors import MachineError, UserError
from kernelpro.evaluation.expectation import Drawer, to_cpu
from kernelpro.evaluation.subjects import Subjects
from kernelpro.evaluation.timing import Match, Plan, Side
from kernelpro.isolation.base import Subject, SubjectFailure
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.outcome import Latency, Status

EAGER, COMPILE = "eager", "compile"


class Baselines:
    """Owns the baselines' processes and what was measured of them."""

    def __init__(self, subjects: Subjects, drawer: Drawer, config: EvaluationConfig) -> None:
        self._subjects = subjects
        self._drawer = drawer
        self._config = config
        self._eager: Subject | None = None
        self._compiled: Latency | None = None
        self._tried = False
        self.compile_speedup: float | None = None
        """Eager over compiled, from the same match."""
        self.note = ""
        """Why there is no compiled baseline, if there is none."""

    def eager(self) -> Subject:
        """The warm eager process; ``UserError`` or ``MachineError`` if it cannot be had."""
        if self._eager is None:
            subject = self._subjects.baseline()
            try:
                subject.load()
            except SubjectFailure as failure:
                subject.close()
                raise baseline_error(failure) from None
            self._eager = subject
        return self._eager

    def restart(self) -> None:
        """Forget the eager process: it failed, and the next use starts another."""
        if self._eager is not None:
            self._eager.close()
            self._eager = None

    def compiled(self) -> Latency | None:
        """Latency under torch.compile, measured on the first call beside eager."""
        if not self._tried:
            self._tried = True
            try:
                self._measure_compiled()
            except SubjectFailure as failure:
                first = failure.message.strip().splitlines() or ["no reason given"]
                self.note = f"torch.compile baseline failed: {first[0][:300]}"
        return self._compiled

    def measured(self) -> dict[str, Latency]:
        """The compiled baseline, if it has been measured."""
        return {} if self._compiled is None else {COMPILE: self._compiled}

    def close(self) -> None:
        """End the processes."""
        self.restart()

    def _measure_compiled(self) -> None:
        subject = self._subjects.baseline(compile_mode="default")
        try:
            subject.load()
            rng = random.Random(secrets.randbits(62))
            sides = [
                Side(name=EAGER, subject=self.eager()),
                Side(name=COMPILE, subject=subject),
            ]
            match = Match(
                sides,
                Plan.from_config(self._config, full=False),
                refill=lambda _slot: to_cpu(
                    self._drawer.draw("default", rng.getrandbits(62)).inputs
                ),
                verify=lambda *_: None,
                rng=rng,
                bytes_per_call=self._drawer.bytes_per_call(),
            )
            match.play()
            self._compiled = sides[1].latency(match.quiet_rounds())
            self.compile_speedup = match.speedup(sides[1]).value
        finally:
            subject.close()


def baseline_error(failure: SubjectFailure) -> UserError | MachineError:
    """A reference that fails is not the candidate's doing: who must act?"""
    text = f"The reference itself fails in its process ({failure.status.value}): {failure.message}"
    if failure.status in (Status.OUT_OF_MEMORY, Status.TIMEOUT):
        return MachineError(
            f"{text}\nThis machine is too small or too slow for the problem as it stands."
        )
    return UserError(f"{text}\nCorrect the problem file.")
