"""The two baselines: the reference as written, always; under torch.compile, beside full checks.

One warm process each serves every evaluation; eager's is started again if it has died. A compiled
baseline that fails is a remark, not an error.
"""

from __future__ import annotations

from kernelpro.errors import MachineError, UserError
from kernelpro.evaluation.expectation import Expectation
from kernelpro.evaluation.structure import Flat, to_tensor
from kernelpro.evaluation.subjects import Subjects
from kernelpro.isolation.base import Call, Subject, SubjectFailure
from kernelpro.schema.outcome import Status

EAGER, COMPILE = "eager", "compile"


class Baselines:
    """Owns the baselines' processes."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._eager: Subject | None = None
        self._compiled: Subject | None = None
        self._quietest_us = float("inf")
        self.note = ""
        """Why there is no compiled baseline, if it was wanted and there is none."""

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

    def answer(self, expected: Expectation) -> Flat | None:
        """What the reference returns for a draw, under its weights, in a process like a
        candidate's; None if that process does not answer."""
        try:
            subject = self.eager()
            if expected.state:
                subject.write_state(expected.state)
            subject.write_inputs(0, expected.draw.inputs)
            subject.run([Call(slot=0, fresh_address=expected.traits.mutates_inputs)])
            outputs = subject.read_outputs(0)
        except SubjectFailure:
            self.restart()
            return None
        return Flat(outputs.structure, tuple(map(to_tensor, outputs.tensors)))

    def restart(self) -> None:
        """Forget the eager process: it failed, and the next use starts another."""
        if self._eager is not None:
            self._eager.close()
            self._eager = None

    def compiled(self) -> Subject | None:
        """The warm process under torch.compile; None once it has failed (``note`` says why)."""
        if self._compiled is None and not self.note:
            self._compiled = self._subjects.baseline(compile_mode="default")
            try:
                self._compiled.load()
            except SubjectFailure as failure:
                self.drop_compiled(failure)
        return self._compiled

    def drop_compiled(self, failure: SubjectFailure) -> None:
        """Go on without the compiled baseline, and say why."""
        first = failure.message.strip().splitlines() or ["no reason given"]
        self.note = f"torch.compile baseline failed: {first[0][:300]}"
        if self._compiled is not None:
            self._compiled.close()
            self._compiled = None

    def disturbance(self, median_us: float) -> float:
        """This eager median over the smallest one seen so far: 1.0 = as quiet as it gets."""
        self._quietest_us = min(self._quietest_us, median_us)
        return median_us / self._quietest_us

    def close(self) -> None:
        """End the processes."""
        self.restart()
        if self._compiled is not None:
            self._compiled.close()
            self._compiled = None


def baseline_error(failure: SubjectFailure) -> UserError | MachineError:
    """A reference that fails is not the candidate's doing: who must act?"""
    text = f"The reference itself fails in its process ({failure.status.value}): {failure.message}"
    if failure.status in (Status.OUT_OF_MEMORY, Status.TIMEOUT):
        return MachineError(
            f"{text}\nThis machine is too small or too slow for the problem as it stands."
        )
    return UserError(f"{text}\nCorrect the problem file.")
