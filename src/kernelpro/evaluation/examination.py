"""One candidate under examination: load it, give it weights, and check its answers.

Ends early by raising ``SubjectFailure`` with the status the evidence calls for. Timing is in
``timing``; the order of all steps is in ``referee``.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from kernelpro.evaluation import effects, integrity, messages
from kernelpro.evaluation.expectation import (
    Draw,
    Drawer,
    Expectation,
    Judgement,
    Skipped,
    judge,
)
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.official import official_pass
from kernelpro.evaluation.parameters import StateMap
from kernelpro.evaluation.second_look import Peer, SecondLook
from kernelpro.evaluation.tolerance import CLASSES
from kernelpro.isolation import payload
from kernelpro.isolation.base import Block, Call, Operators, Outputs, Subject, SubjectFailure
from kernelpro.schema.outcome import Correctness, Stage, Status
from kernelpro.schema.problem import Precision

LATE_S = 0.1
"""A hundred milliseconds after the call an output must be what it was (EVAL_PITFALLS 2)."""


@dataclass(slots=True)
class Tally:
    """Largest errors and results per family, over all judged answers."""

    trials: int = 0
    precision: str = "strict"
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    tolerance: dict[str, float] = field(default_factory=dict)
    families: dict[str, bool] = field(default_factory=dict)
    worst: Judgement | None = None

    def add(self, judged: Judgement, draw: Draw, passed: bool) -> None:
        """Count one answer."""
        self.trials += 1
        self.families[draw.family] = self.families.get(draw.family, True) and passed
        self.max_abs_error = max(self.max_abs_error, judged.comparison.max_abs_error)
        self.max_rel_error = max(self.max_rel_error, judged.comparison.max_rel_error)
        if judged.bound is not None and not self.tolerance:
            self.tolerance = judged.bound.summary()
        order = (*CLASSES, "none")
        self.precision = max(self.precision, judged.precision, key=order.index)
        if not passed and self.worst is None:
            self.worst = judged

    def correctness(self) -> Correctness | None:
        """The record; None if nothing was judged."""
        if not self.trials:
            return None
        worst = self.worst.comparison if self.worst is not None else None
        return Correctness(
            max_abs_error=self.max_abs_error,
            max_rel_error=self.max_rel_error,
            tolerance=self.tolerance,
            trials=self.trials,
            precision_class=self.precision,
            mismatches=worst.mismatches if worst else (),
            mismatch_share=worst.wrong / worst.total if worst and worst.total else 0.0,
            families=self.families,
        )


class Examination:
    """Checks the answers of one loaded subject."""

    def __init__(
        self,
        subject: Subject,
        drawer: Drawer,
        state_map: StateMap,
        *,
        device: str,
        problem: Precision,
        rng: random.Random,
        lenient: bool = False,
        peer: Peer | None = None,
    ) -> None:
        """lenient: the official verdict decides; what only the strict one refuses is noted.
        peer: asked when an answer is too coarse (see ``second_look``)."""
        self.subject = subject
        self.drawer = drawer
        self.state_map = state_map
        self.findings = Findings()
        self.tally = Tally()
        self.official: bool | None = None
        self.strict_failure = ""
        """What the strict verdict refused while the official one decides."""
        self.state: Mapping[str, torch.Tensor] = drawer.reference.initial_state
        """The reference's weights that correspond to what the candidate holds now."""
        self._device = device
        self._allowed = CLASSES[: CLASSES.index(problem) + 1]
        self._problem = problem
        self.rng = rng
        self._lenient = lenient
        self.second_look = SecondLook(subject, peer, device=device)
        self._blocks = 0
        self._kept = effects.KeptAnswer()
        self._answers: dict[tuple[int, ...], int] = {}
        """Digest of an answer -> seed of the draw it answered."""

    def load_weights(self, state: Mapping[str, torch.Tensor]) -> None:
        """Give the reference's weights to both sides (to neither under policy ``seed``)."""
        if self.state_map.writable:
            self.subject.write_state(self.state_map.translate(state))
            self.state = state
        self.drawer.reference.load_state(self.state)

    def first_block(self, *, full: bool) -> None:
        """The problem's own inputs, under the weights loaded last: two draws, the first repeated.

        Also the official verdict, aliasing, mutation, determinism and late writes.
        """
        a, b = self.expect_default(), self.expect_default()
        self._run([a, b], [Call(slot=0), Call(slot=1, fresh_address=True), Call(slot=0)])
        judged = judge(self._read(0), a, self._device)
        self.official = official_pass(judged, a)
        self._aliasing(judged, a, b)
        self._accept(judged, a, "", official=True)
        second = judge(self._read(1), b, self._device)
        self.official = self.official and official_pass(second, b)
        self._accept(second, b, "on the second call", official=True)
        again = self._judged_again(self._read(2), judged, a)
        self._accept(again, a, "when the first inputs came again", official=True)
        self._determinism(judged, again)
        self._mutation([(0, a), (1, b)])
        if full:
            self._late(judged, call=0)
        self._kept.keep(self.subject, 0, judged.tensors, a)
        self.findings.passed("result_reuse")
        self.findings.passed("poisoned_memory", "recycled memory was filled with NaN patterns")

    def audit(self, *, allowed: bool) -> Operators:
        """What a call spends in torch's own operators; fails where they are not ``allowed``."""
        seen = self.subject.audit(0)
        integrity.examine_operators(self.findings, seen, allowed=allowed)
        self.stop_if_failed()
        return seen

    def families_block(self, names: Sequence[str], when: str = "", set_index: int = 0) -> None:
        """One draw of each family, two a block, so that each answer outlives the next call."""
        expected = []
        for name in names:
            drawn = self.expect(name, set_index)
            if isinstance(drawn, Expectation):
                expected.append(drawn)
        for start in range(0, len(expected), 2):
            pair = expected[start : start + 2]
            calls = [Call(slot=i, fresh_address=self.rng.random() < 0.5) for i in range(len(pair))]
            self._run(pair, calls)
            for index, item in enumerate(pair):
                self._accept(judge(self._read(index), item, self._device), item, when)
            self._mutation(list(enumerate(pair)))

    def reloaded_weights(self, state: Mapping[str, torch.Tensor]) -> None:
        """New weights after calls: an answer from old ones is a failed ``weights_reload``."""
        if not self.state_map.writable:
            self.findings.unknown("weights_reload", self.state_map.note)
            return
        self.load_weights(state)
        drawn = self.expect_default()
        self._run([drawn], [Call(slot=0)])
        judged = judge(self._read(0), drawn, self._device)
        # A coarse answer does follow them; what it is refused for is said by ``_accept``.
        if not self._is_right(judged) and judged.precision not in CLASSES:
            self.findings.failed(
                "weights_reload",
                "the answer does not follow weights loaded after the first calls: "
                f"{judged.comparison.reason}",
            )
        self._accept(judged, drawn, "after new weights were loaded")
        self.findings.passed("weights_reload")

    def updated_buffers(self) -> None:
        """Running statistics after one call must be what the reference's call leaves behind."""
        names = self.drawer.traits.changed_buffers
        theirs = {ref: own for own, ref in self.state_map.names.items()}
        if not names or self.drawer.reference.evaluation_mode:
            return
        if not all(name in theirs for name in names):
            return
        self.load_weights(self.state)
        drawn = self.expect_default()
        self._run([drawn], [Call(slot=0)])
        wanted = self.drawer.reference.updated_buffers(drawn.draw.inputs, names)
        effects.examine_buffers(self.subject, self.state_map, wanted)

    def timed_call(self, call: int, expected: Expectation) -> None:
        """Judge an output of a timed block; right before and wrong now is the worst kind."""
        judged = judge(self._read(call), expected, self._device)
        self._accept(judged, expected, "in a timed call", Stage.TIME, official=True)

    def kept_answer(self) -> None:
        """Last of all: the first answer must still be what it was."""
        self._kept.examine(self.findings, self.subject)
        self.stop_if_failed()

    def block_seen(self, block: Block) -> None:
        """Look at what the harness reported about a block."""
        traits = self.drawer.traits
        integrity.examine_block(self.findings, block, first=self._blocks == 0)
        integrity.examine_arguments(
            self.findings, block, altered=traits.mutates_inputs, shared=traits.outputs_in_inputs
        )
        self._blocks += 1
        self.stop_if_failed()

    def stop_if_failed(self) -> None:
        """Raise if an integrity check has failed."""
        failure = self.findings.failure
        if failure is not None:
            meaning = integrity.CHECKS[failure.check]
            raise SubjectFailure(
                Status.CHEATING,
                Stage.VERIFY,
                f"Integrity check {failure.check} failed (required: {meaning}): {failure.detail}. "
                f"{integrity.NEXT_STEP[failure.check]}",
            )

    def expect(self, family: str, set_index: int = 0) -> Expectation | Skipped:
        """A new draw with its answer, from a seed the candidate never sees."""
        return self.drawer.expect(family, self.rng.getrandbits(62), set_index)

    def expect_default(self) -> Expectation:
        """A new draw of the problem's own inputs with its answer."""
        return self.drawer.answer(self.drawer.draw("default", self.rng.getrandbits(62)))

    def _run(self, expected: Sequence[Expectation], calls: Sequence[Call]) -> None:
        for slot, item in enumerate(expected):
            self.subject.write_inputs(slot, item.draw.inputs)
        if self.drawer.traits.mutates_inputs:
            calls = [dataclasses.replace(call, fresh_address=True) for call in calls]
        block = self.subject.run(calls)
        if len(calls) > 1 and block.flags.get("late_writes"):
            # Written by a later call, or by something that outlives the call? One call tells.
            alone = self.subject.run(calls[:1])
            if not alone.flags.get("late_writes"):
                self.findings.failed(
                    "output_aliasing",
                    "an output was overwritten by a later call; return new memory every time",
                )
                self.stop_if_failed()
        self.block_seen(block)

    def _read(self, call: int) -> Outputs:
        outputs = self.subject.read_outputs(call)
        for raw in outputs.tensors:
            if raw.type_name not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
                self.findings.failed("lazy_output", f"an output is a {raw.type_name[:100]}")
                self.stop_if_failed()
        return outputs

    def _is_right(self, judged: Judgement) -> bool:
        return judged.comparison.passed or judged.precision in self._allowed

    def _accept(
        self,
        judged: Judgement,
        expected: Expectation,
        when: str,
        stage: Stage = Stage.VERIFY,
        *,
        official: bool = False,
    ) -> None:
        """Count an answer; raise if it is wrong, or right only in a forbidden arithmetic.

        official: the official verdict looks at this answer too.
        """
        right = self._is_right(judged)
        if not right and judged.precision in CLASSES:
            judged = self._looked_at_again(judged, expected)
            right = self._is_right(judged)
        self.tally.add(judged, expected.draw, right)
        digest = _digest(judged.tensors)
        if right:
            self._answers.setdefault(digest, expected.draw.seed)
            return
        known = self._answers.get(digest) if judged.tensors else None
        if known is not None and known != expected.draw.seed:
            self.findings.failed(
                "result_reuse", "an answer equals, bit for bit, the answer to earlier inputs"
            )
        self.stop_if_failed()
        if judged.precision in CLASSES:
            text = messages.too_coarse(judged, expected.draw, self._problem)
        else:
            text = messages.wrong_result(judged, expected.draw, when=when)
        if self._lenient and (not official or official_pass(judged, expected)):
            self.strict_failure = self.strict_failure or text.splitlines()[0]
            return
        raise SubjectFailure(Status.WRONG_RESULT, stage, text)

    def _looked_at_again(self, judged: Judgement, expected: Expectation) -> Judgement:
        """A coarse answer, unless the machine explains it; may raise ``Unrepeatable``."""
        judged = self.second_look.judge(judged, expected)
        if not self._is_right(judged) and not self._lenient:
            self.second_look.raise_if_unrepeatable(
                expected, fresh=self.drawer.traits.mutates_inputs, seen=self.block_seen
            )
        return judged

    def _aliasing(self, judged: Judgement, a: Expectation, b: Expectation) -> None:
        """Is output 0 now what call 1 or 2 returned, and no longer the answer to its own inputs?"""
        if self._is_right(judged) or judged.contract:
            self.findings.passed("output_aliasing")
            return
        later = judge(self._read(1), b, self._device)
        if _digest(later.tensors) != _digest(judged.tensors):
            return
        if self._is_right(later):
            self.findings.failed(
                "output_aliasing", "the first output was overwritten by the next call"
            )
            self.stop_if_failed()
        last = judge(self._read(2), a, self._device)
        if self._is_right(last) and _digest(last.tensors) == _digest(judged.tensors):
            self.findings.failed("output_aliasing", "outputs share one static buffer")
            self.stop_if_failed()

    def _judged_again(self, outputs: Outputs, known: Judgement, e: Expectation) -> Judgement:
        """Judge an answer that should equal a known one; equal bytes need no second look."""
        same = len(outputs.tensors) == len(known.tensors) and all(
            effects.same_bytes(before, raw.data)
            for before, raw in zip(known.tensors, outputs.tensors, strict=True)
        )
        return known if same else judge(outputs, e, self._device)

    def _determinism(self, first: Judgement, again: Judgement) -> None:
        same = _digest(first.tensors) == _digest(again.tensors)
        self.findings.passed(
            "determinism", "bit for bit" if same else "within the bound, not bit for bit"
        )

    def _mutation(self, calls: Sequence[tuple[int, Expectation]]) -> None:
        """Compare the inputs of calls, as they are now, with what they should be."""
        effects.examine_inputs(self.findings, self.subject, calls)
        self.stop_if_failed()

    def _late(self, judged: Judgement, *, call: int) -> None:
        """Read an output again a little later."""
        time.sleep(LATE_S)
        now = self._read(call)
        for before, raw in zip(judged.tensors, now.tensors, strict=True):
            if not effects.same_bytes(before, raw.data):
                self.findings.failed(
                    "late_writes", f"an output changed within {LATE_S:g} s after the call"
                )
        self.stop_if_failed()


def _digest(tensors: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Fingerprint of an answer; every byte counts."""
    return tuple(payload.digest(tensor.contiguous()) for tensor in tensors)
