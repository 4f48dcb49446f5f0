"""A match beside the run's own: against eager without TF32, and against torch.compile.

A run in TF32 or half arithmetic has TF32-on eager as its baseline (same arithmetic on both
sides). The paper's numbers have TF32-off eager under the same freedom, so that baseline plays here
against the winner, on the same inputs, in the same rounds. Where eager is kept, the match says
what torch.compile or the TF32 switch alone would have been worth.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import random
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelpro.bench.kernelbench_record import Versus
from kernelpro.evaluation.compare import contract_violation
from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.parameters import match_state
from kernelpro.evaluation.prepare import prepare
from kernelpro.evaluation.reference import Reference
from kernelpro.evaluation.statistics import Estimate
from kernelpro.evaluation.structure import Flat, to_tensor
from kernelpro.evaluation.subjects import Subjects
from kernelpro.evaluation.timing import Match, Plan, Side, SideFailed
from kernelpro.isolation.base import Subject, SubjectFailure
from kernelpro.schema.config import EvaluationConfig
from kernelpro.schema.hardware import Device, Peaks
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

if TYPE_CHECKING:
    import torch

PAPER_ATOL, PAPER_RTOL = 1e-2, 1e-3
"""The KernelPro paper's tolerance (PAPER section 6)."""
EAGER, STRICT, COMPILE, CANDIDATE = "eager", "strict_eager", "compile", "candidate"


def versus(
    problem: Problem, source: str | None, device: Device, config: EvaluationConfig, *,
    peaks: Peaks | None, cache_root: Path, with_compiled: bool,
) -> Versus:  # fmt: skip
    """Play the match. ``source``: the winner, or None where eager is handed back.

    A side that fails is left out, and ``missing`` says so. ``UserError`` or ``MachineError`` if
    the reference itself does not run.
    """
    with ExitStack() as stack:
        table = _Table(problem, source, device, peaks, config, cache_root, stack)
        if problem.precision != "strict":
            table.seat(STRICT)
        if with_compiled:
            table.seat(COMPILE)
        if source is not None:
            table.seat(CANDIDATE)
        return table.play()


class _Table:
    """The sides of one match and what their answers were held against."""

    def __init__(
        self, problem: Problem, source: str | None, device: Device, peaks: Peaks | None,
        config: EvaluationConfig, cache_root: Path, stack: ExitStack,
    ) -> None:  # fmt: skip
        self.seed = secrets.randbits(62)
        self._rng = random.Random(self.seed)
        self._source, self._device, self._config = source, device, config
        self._cache_root, self._stack = cache_root, stack
        draw_on = "cpu" if config.inputs == "cpu" else device.id
        reference, traits, _ = prepare(
            problem, device.id, construction_seed=self.seed & 0x7FFFFFFF, draw_on=draw_on
        )
        self._drawer = Drawer(reference, traits)
        self._subjects = self._for(reference)
        strict = copy.copy(reference)
        strict.problem = dataclasses.replace(problem, precision="strict")
        self._strict_subjects = self._for(strict)
        self._peaks = peaks
        self._inputs: dict[int, list[Any]] = {}
        self._expected: dict[int, Flat] = {}
        self._checked, self._worst = 0, 0.0
        self.missing: list[str] = []
        self.sides: list[Side] = []
        self.seat(EAGER)

    def _for(self, reference: Reference) -> Subjects:
        cores = self._device.units if self._device.kind == "cpu" else len(os.sched_getaffinity(0))
        return Subjects(
            reference, self._config, self._device, threads=self._config.threads or cores,
            cache_root=self._cache_root, bytes_per_call=self._drawer.bytes_per_call(),
        )  # fmt: skip

    def seat(self, name: str) -> None:
        """Start a side's process and give it the reference's weights."""
        try:
            subject = self._start(name)
            self._stack.callback(subject.close)
            loaded = subject.load()
            if name == CANDIDATE:
                weights = self._drawer.reference.initial_state
                state_map = match_state(weights, loaded.state)
                if state_map.writable:
                    subject.write_state(state_map.translate(weights))
        except SubjectFailure as failure:
            self._leave_out(name, failure)
            return
        self.sides.append(self._side(name, subject))

    def _side(self, name: str, subject: Subject) -> Side:
        """A side of which nothing is measured yet."""
        fresh = self._drawer.traits.mutates_inputs
        return Side.on(self._device, self._peaks, name=name, subject=subject, always_fresh=fresh)

    def _start(self, name: str) -> Subject:
        if name == CANDIDATE:
            assert self._source is not None
            return self._subjects.candidate(self._source, content_hash(self._source))
        if name == STRICT:
            return self._strict_subjects.baseline()
        return self._subjects.baseline(compile_mode="default" if name == COMPILE else None)

    def _leave_out(self, name: str, failure: SubjectFailure) -> None:
        reason = (failure.message.strip().splitlines() or ["no reason given"])[0]
        self.missing.append(f"{name} ({failure.status.value}): {reason[:200]}")

    def play(self) -> Versus:
        """Until every side still seated has its numbers."""
        plan = Plan.from_config(self._config, full=True)
        while len(self.sides) > 1:
            match = Match(
                [self._side(side.name, side.subject) for side in self.sides], plan,
                refill=self._refill, verify=self._verify, rng=self._rng,
                bytes_per_call=self._drawer.bytes_per_call(),
            )  # fmt: skip
            try:
                match.play()
                return self._result(match)
            except SideFailed as ended:
                self._leave_out(ended.side.name, ended.failure)
                gone = ended.side.name
                self.sides = [s for s in self.sides if gone not in (s.name, EAGER)]
        return Versus(latencies={}, seed=self.seed, missing="; ".join(self.missing) or "one side")

    def _result(self, match: Match) -> Versus:
        sides = {side.name: side for side in match.sides}
        used = match.quiet_rounds()
        over = {name: match.speedup(side) for name, side in sides.items() if name != EAGER}
        paper = self._paper_like(match, sides)
        return Versus(
            latencies={name: side.latency(used) for name, side in sides.items()},
            paper_like=paper.value if paper else None,
            paper_like_ci95=(paper.low, paper.high) if paper else None,
            paper_tolerance_passed=self._worst <= 1.0 if self._checked else None,
            answers_checked=self._checked, worst_error=self._worst,
            tf32_switch=1.0 / over[STRICT].value if STRICT in over else None,
            compiled=over[COMPILE].value if COMPILE in over else None,
            seed=self.seed, missing="; ".join(self.missing),
        )  # fmt: skip

    def _paper_like(self, match: Match, sides: dict[str, Side]) -> Estimate | None:
        """Strict eager over what is handed back, by the rounds they shared."""
        if STRICT not in sides or (self._source is not None and CANDIDATE not in sides):
            return None
        order = [sides[STRICT], sides[CANDIDATE if CANDIDATE in sides else EAGER]]
        against = copy.copy(match)
        against.sides = order
        return against.speedup(order[1])

    def _refill(self, slot: int) -> list[Any]:
        inputs = self._drawer.draw("default", self._rng.getrandbits(62)).inputs
        self._inputs[slot] = inputs
        self._expected.pop(slot, None)
        return inputs

    def _verify(self, side: Side, call: int, slot: int) -> None:
        """Hold a timed answer of the candidate against eager's, under the paper's tolerance."""
        if side.name != CANDIDATE:
            return
        if slot not in self._expected:
            self._expected[slot] = self._drawer.reference.eager(self._inputs[slot])
        expected, outputs = self._expected[slot], side.subject.read_outputs(call)
        self._checked += 1
        if contract_violation(outputs, expected, self._device.id):
            self._worst = float("inf")
            return
        for raw, eager in zip(outputs.tensors, expected.tensors, strict=True):
            self._worst = max(self._worst, tolerance_used(to_tensor(raw).to(eager.device), eager))


def tolerance_used(actual: torch.Tensor, eager: torch.Tensor) -> float:
    """Largest |actual - eager| over (atol + rtol |eager|) of the paper; at most 1 passes.

    Equal infinities and NaN in the same place are no difference; anywhere else they are infinite.
    """
    import torch

    if not eager.numel():
        return 0.0
    got, want = actual.double(), eager.double()
    same = (got == want) | (got.isnan() & want.isnan())
    share = (got - want).abs() / (PAPER_ATOL + PAPER_RTOL * want.abs())
    share = torch.where(same, torch.zeros_like(share), share)
    return float(torch.where(share.isnan(), torch.full_like(share, torch.inf), share).max())
