"""Before an answer is refused as too coarse: is it the candidate's arithmetic, or the machine's?

Two things other than reduced precision give a slightly inexact answer: torch's own operators that
round differently in a subject's process than in the referee's (another dispatch, other threads),
and a process that was disturbed once (seen: MKL's lazy choice of a kernel raced with itself, and
the first ``torch.log`` of a process was off by 2^-15; ``isolation.vector_math`` prevents that
one). A kernel that computes in TF32 or half does neither: eager is exact where it runs, and the
same inputs give the same coarse answer again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import torch

from kernelpro.evaluation.expectation import Expectation, Judgement, judge, judge_tensors
from kernelpro.evaluation.structure import Flat
from kernelpro.isolation.base import Block, Call, Subject

REPEATS = 6
"""Chosen. Times the same inputs must get one and the same exact answer before a single coarse one
is put down to the machine."""

LESS_EXACT = (
    "torch's own eager is less exact in a candidate's process than in the referee's: answers are "
    "held to the former"
)

Peer = Callable[[Expectation], Flat | None]
"""What the reference answers in a process like the candidate's; None if it cannot be asked."""


class Unrepeatable(Exception):
    """A coarse answer that the same inputs did not get again: start over, once."""


class SecondLook:
    """Looks again at coarse answers of one candidate; forgives at most one of them."""

    def __init__(self, subject: Subject, peer: Peer | None, *, device: str) -> None:
        self._subject = subject
        self._peer = peer
        self._device = device
        self._spent = False
        self.notes: list[str] = []
        """What was found, for the record."""

    def judge(self, judged: Judgement, expected: Expectation) -> Judgement:
        """The answer held against eager's error where candidates run; ``judged`` if that does not
        change it."""
        theirs = self._peer(expected) if self._peer is not None else None
        if theirs is None or theirs.structure != expected.eager.structure:
            return judged
        again = judge_tensors(
            judged.tensors, dataclasses.replace(expected, eager=_on(theirs, expected), _bounds={})
        )
        if again.precision != "strict":
            return judged
        if LESS_EXACT not in self.notes:
            self.notes.append(LESS_EXACT)
        return again

    def raise_if_unrepeatable(
        self, expected: Expectation, *, fresh: bool, seen: Callable[[Block], None]
    ) -> None:
        """Ask for the same answer again, ``REPEATS`` times in new memory: ``Unrepeatable`` if
        each is exact and all are alike, bit for bit. fresh: every call gets its own inputs."""
        if self._spent:
            return
        self._spent = True
        self._subject.write_inputs(0, expected.draw.inputs)
        block = self._subject.run([Call(slot=0, fresh_address=fresh)] * REPEATS)
        seen(block)
        answers = [
            judge(self._subject.read_outputs(call), expected, self._device)
            for call in range(REPEATS)
        ]
        if all(a.precision == "strict" for a in answers) and _alike([a.tensors for a in answers]):
            self.notes.append(
                f"one answer was too coarse, the same inputs then got the exact one {REPEATS} "
                "times: the machine or the process was disturbed, all checks were run again"
            )
            raise Unrepeatable(self.notes[-1])


def _on(answer: Flat, expected: Expectation) -> Flat:
    """``answer`` where the expectation's tensors are."""
    pairs = zip(answer.tensors, expected.eager.tensors, strict=True)
    return Flat(answer.structure, tuple(mine.to(theirs.device) for mine, theirs in pairs))


def _alike(answers: Sequence[tuple[torch.Tensor, ...]]) -> bool:
    first, *others = answers
    return all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))
