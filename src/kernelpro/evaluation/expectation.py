"""What the reference says for one draw of inputs, and whether a candidate's answer agrees.

An expectation is made after the candidate is loaded, from a seed the candidate never sees, and
stays in the referee. The float64 runs in coarser arithmetic happen only if the strict bound
fails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelpro.errors import UserError
from kernelpro.evaluation import compare, families
from kernelpro.evaluation.arithmetic import ORDERING
from kernelpro.evaluation.compare import Comparison
from kernelpro.evaluation.reference import Reference, Traits, all_finite, seeded
from kernelpro.evaluation.structure import Flat, flatten, to_tensor
from kernelpro.evaluation.tolerance import CLASSES, Bound, bounds
from kernelpro.isolation.base import Outputs
from kernelpro.schema.problem import Precision

HOPELESS = 0.05
"""Chosen. A family on which eager float32 itself is off by more than 5 % of the output's scale
tests rounding luck, not the candidate."""
EAGER_FLIPS, TF32_FLIPS = 4, 0.01
"""Chosen. Integer outputs made from rounded numbers (argmax near ties) may differ at four times
as many positions as eager does from float64, or 1 % of those where TF32 does (its noise is about
2^13 times float32's)."""
KEPT_BYTES = 64 << 20
"""Chosen. A larger draw is made again when it is asked for again."""

EQUAL_VALUES = ("ties", "zeros")
"""Families in which which of several equal values comes first is nobody's to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One set of forward's arguments and where it came from."""

    family: str
    seed: int
    set_index: int
    inputs: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A family this problem does not take, and why."""

    family: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Expectation:
    """A draw and the reference's answer to it."""

    draw: Draw
    eager: Flat
    exact: Flat
    reference: Reference
    traits: Traits
    state: Mapping[str, torch.Tensor]
    """The weights of this answer: coarser arithmetic may be run later, under other weights."""
    _bounds: dict[Precision, list[Bound | None]] = field(default_factory=dict)
    _rounded: dict[Precision, Flat | None] = field(default_factory=dict)

    def bounds(self, precision: Precision) -> list[Bound | None] | None:
        """Bound of each output (None for integer ones); None if the class cannot be computed."""
        if precision not in self._bounds:
            rounded: dict[Precision, Flat] = {}
            if precision != "strict":
                classes: Sequence[Precision] = CLASSES[1 : CLASSES.index(precision) + 1]
                for name in classes:
                    flat = self.in_arithmetic(name)
                    if flat is None:
                        return None
                    rounded[name] = flat
            self._bounds[precision] = [
                self._bound(index, precision, rounded) for index in range(len(self.exact.tensors))
            ]
        return self._bounds[precision]

    def tolerated_flips(self, index: int) -> int | None:
        """How many elements of an integer output may differ; None = its order is not defined."""
        if self.draw.family in EQUAL_VALUES and self.traits.operators & ORDERING:
            return None
        exact, eager = self.exact.tensors[index], self.eager.tensors[index]
        tf32 = self.in_arithmetic("tf32")
        flips = EAGER_FLIPS * int((exact != eager).sum())
        if tf32 is not None:
            flips = max(flips, int(TF32_FLIPS * int((exact != tf32.tensors[index]).sum())))
        return flips

    def _bound(
        self, index: int, precision: Precision, rounded: dict[Precision, Flat]
    ) -> Bound | None:
        exact, eager = real(self.exact.tensors[index]), real(self.eager.tensors[index])
        if not eager.is_floating_point():
            return None
        others = {name: real(flat.tensors[index]) for name, flat in rounded.items()}
        made = bounds(
            exact,
            eager,
            others,
            reduction_length=self.traits.reduction_length,
            magnitude=lambda: _magnitude(self.draw.inputs),
        )
        return made[precision]

    def in_arithmetic(self, precision: Precision) -> Flat | None:
        """What the reference gives in the arithmetic of a class (strict: float64), if it can."""
        if precision == "strict":
            return self.exact
        if precision not in self._rounded:
            current = self.reference.loaded
            self.reference.load_state(self.state)
            self._rounded[precision] = self.reference.rounded(self.draw.inputs, precision)
            self.reference.load_state(current)
        return self._rounded[precision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A candidate's answer held against an expectation."""

    comparison: Comparison
    precision: str
    """Strictest class whose bound holds, or ``none``."""
    contract: str
    """What is wrong with the form of the answer; empty if nothing."""
    tensors: tuple[torch.Tensor, ...]
    """The answer, where the subject's bytes were received; empty if its form is wrong."""
    bound: Bound | None = None
    """Bound of the first floating output under the judged class."""


def judge(outputs: Outputs, expected: Expectation, device: str) -> Judgement:
    """Form, then values under the strictest class that holds."""
    violation = compare.contract_violation(outputs, expected.eager, device, exact=expected.exact)
    if violation is None:
        try:
            tensors = tuple(to_tensor(raw) for raw in outputs.tensors)
        except ValueError as error:
            violation = f"an output cannot be read: {error}"
    if violation is not None:
        return Judgement(
            comparison=Comparison(reason=violation), precision="none", contract=violation,
            tensors=(),
        )  # fmt: skip
    return judge_tensors(tensors, expected)


def judge_tensors(tensors: tuple[torch.Tensor, ...], expected: Expectation) -> Judgement:
    """Values of well-formed outputs under the strictest class that holds."""
    strict = _compare_all(tensors, expected, "strict")
    if strict.passed:
        return _judgement(strict, "strict", tensors, expected)
    if not any(t.is_floating_point() or t.is_complex() for t in expected.eager.tensors):
        return _judgement(strict, "none", tensors, expected)
    # The loosest class first: a plainly wrong answer costs one more look, not two.
    if not passes(tensors, expected, "half"):
        return _judgement(strict, "none", tensors, expected)
    tf32 = passes(tensors, expected, "tf32")
    return _judgement(strict, "tf32" if tf32 else "half", tensors, expected)


def passes(tensors: tuple[torch.Tensor, ...], expected: Expectation, precision: Precision) -> bool:
    """True if well-formed outputs hold the bound of ``precision``; stops at the first error."""
    return _compare_all(tensors, expected, precision, quick=True).passed


def _judgement(
    comparison: Comparison, precision: str, tensors: tuple[torch.Tensor, ...], e: Expectation
) -> Judgement:
    strict = [b for b in e.bounds("strict") or [] if b is not None]
    return Judgement(
        comparison=comparison,
        precision=precision,
        contract="",
        tensors=tensors,
        bound=strict[0] if strict else None,
    )


def _compare_all(
    tensors: tuple[torch.Tensor, ...],
    expected: Expectation,
    precision: Precision,
    *,
    quick: bool = False,
) -> Comparison:
    limits = expected.bounds(precision)
    if limits is None:
        return Comparison(reason="this class cannot be computed for the problem")
    results = []
    for index, (actual, bound) in enumerate(zip(tensors, limits, strict=True)):
        exact, eager = expected.exact.tensors[index], expected.eager.tensors[index]
        if bound is None:
            results.append(_compare_integers(actual, expected, index))
        else:
            results.append(
                compare.compare(
                    real(actual), real(exact), real(eager), bound, output=index, quick=quick
                )
            )
    return compare.merge(results)


def _compare_integers(actual: torch.Tensor, expected: Expectation, index: int) -> Comparison:
    exact = expected.exact.tensors[index]
    first = compare.compare_exact(actual, exact, output=index)
    if first.passed:
        return first
    flips = expected.tolerated_flips(index)
    if flips is None:
        return Comparison(total=first.total)
    return compare.compare_exact(actual, exact, tolerated=flips, output=index)


class Drawer:
    """Draws inputs of a family and asks the reference; remembers which families do not apply."""

    def __init__(self, reference: Reference, traits: Traits) -> None:
        self.reference = reference
        self.traits = traits
        self.skipped: dict[str, str] = {}
        self.positive: dict[str, str] = {}
        """Families drawn as absolute values, and why."""
        self._bytes: int | None = None
        self._plain: list[Any] | None = None

    def families(self) -> list[str]:
        """Names of the families that may apply, default first."""
        names = families.applicable(self.traits.operators)
        return [name for name in names if name not in self.skipped]

    def bytes_per_call(self) -> int:
        """Inputs plus outputs of one call on the problem's own inputs."""
        if self._bytes is None:
            expected = self.answer(self.draw("default", 0))
            tensors = (*flatten(expected.draw.inputs).tensors, *expected.eager.tensors)
            self._bytes = sum(t.nbytes for t in tensors)
        return self._bytes

    def plain(self) -> list[Any]:
        """One and the same draw of the problem's own inputs. Nobody but the reference sees it."""
        if self._plain is not None:
            return self._plain
        inputs = self.reference.draw(0)
        if sum(t.nbytes for t in flatten(inputs).tensors) <= KEPT_BYTES:
            self._plain = inputs
        return inputs

    def draw(self, family: str, seed: int, set_index: int = 0) -> Draw:
        """Inputs only."""
        base = self.reference.draw(seed, set_index)
        with seeded(seed ^ 0x5EED, self.reference.device):
            inputs = families.transform(family, base, positive=family in self.positive)
        return Draw(family=family, seed=seed, set_index=set_index, inputs=inputs)

    def expect(self, family: str, seed: int, set_index: int = 0) -> Expectation | Skipped:
        """A draw with its answer, or why this problem does not take the family."""
        if family in self.skipped:
            return Skipped(family=family, reason=self.skipped[family])
        draw = self.draw(family, seed, set_index)
        if family == "default":
            return self.answer(draw)
        result = self._attempt(draw)
        if isinstance(result, Skipped) and family not in self.positive and self._nonnegative(seed):
            self.positive[family] = result.reason
            result = self._attempt(self.draw(family, seed, set_index))
        if isinstance(result, Skipped):
            self.skipped[family] = result.reason
        return result

    def answer(self, draw: Draw) -> Expectation:
        """Ask the reference, under its present weights."""
        return Expectation(
            draw=draw,
            eager=self.reference.eager(draw.inputs),
            exact=self.reference.exact(draw.inputs),
            reference=self.reference,
            traits=self.traits,
            state=self.reference.loaded,
        )

    def _attempt(self, draw: Draw) -> Expectation | Skipped:
        try:
            expected = self.answer(draw)
        except UserError as error:
            first = str(error).splitlines()[0]
            return Skipped(family=draw.family, reason=f"the reference refuses it: {first}")
        if not all_finite((*expected.eager.tensors, *expected.exact.tensors)):
            return Skipped(family=draw.family, reason="the reference gives NaN or infinity")
        limits = [b for b in expected.bounds("strict") or [] if b is not None]
        if limits and all(b.noise > HOPELESS for b in limits):
            reason = "float32 itself has no reliable digits here"
            return Skipped(family=draw.family, reason=reason)
        return expected

    def _nonnegative(self, seed: int) -> bool:
        tensors = flatten(self.reference.draw(seed)).tensors
        return any(t.is_floating_point() and families.meaning(t).nonnegative for t in tensors)


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex tensors as pairs of reals; others as they are."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _magnitude(inputs: list[Any]) -> float:
    """Largest RMS of a floating input."""
    tensors = [t for t in flatten(inputs).tensors if t.is_floating_point() and t.numel()]
    squares = [float(t.double().square().mean()) for t in tensors]
    return math.sqrt(max((s for s in squares if math.isfinite(s)), default=1.0))
