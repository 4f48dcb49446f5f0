"""Compares what a candidate returned with what the reference says: form first, then values.

Every element is looked at, in chunks. Positions of NaN and of each infinity must match exactly.
Knows nothing of processes, time or seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from kernelpro.evaluation.moments import piece_elements, side_by_side, threads_for
from kernelpro.evaluation.structure import Flat, describe, same_form
from kernelpro.evaluation.tolerance import Bound
from kernelpro.isolation.base import Outputs
from kernelpro.schema.outcome import Mismatch
from kernelpro.text import printable

SHOWN = 5
"""Mismatches reported to the writer."""
HONEST_TYPE = "torch.Tensor"

Chunk = tuple[tuple[int, int], torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""(offset, dimension) of a slice, then its part of the answer, float64, eager and ``atol``."""
Errors = tuple[float, torch.Tensor]
"""Largest error of a chunk, and its sums of squares by group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Result for one output, or the worst of several."""

    reason: str = ""
    """Empty = passed; else what is wrong, in one sentence."""
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    """Largest error over the RMS of the reference output."""
    wrong: int = 0
    total: int = 0
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def passed(self) -> bool:
        """True if everything is within the bound."""
        return not self.reason


def contract_violation(
    outputs: Outputs, expected: Flat, device: str, *, exact: Flat | None = None
) -> str | None:
    """What is wrong with the form of ``outputs``: structure, type, dtype, shape, device.

    exact: the float64 reference's form, which says how far Python floats in it may be off. None
    if nothing is wrong. Strides are free, as long as they belong to a strided tensor.
    """
    precise = (exact or expected).structure
    if not same_form(outputs.structure, expected.structure, precise):
        return (
            f"forward must return {describe(expected.structure)}; "
            f"it returned {printable(describe(outputs.structure))[:300]}"
        )
    if len(outputs.tensors) != len(expected.tensors):
        return f"{len(expected.tensors)} tensors expected, {len(outputs.tensors)} returned"
    for index, (got, want) in enumerate(zip(outputs.tensors, expected.tensors, strict=True)):
        dtype = str(want.dtype).removeprefix("torch.")
        where = f"output {index}" if len(expected.tensors) > 1 else "the output"
        if got.type_name != HONEST_TYPE:
            return f"{where} is a {printable(got.type_name)[:100]}; return a plain torch.Tensor"
        if got.dtype != dtype:
            return f"{where} has dtype {got.dtype}; the reference returns {dtype}"
        if tuple(got.shape) != tuple(want.shape):
            return f"{where} has shape {tuple(got.shape)}; the reference's is {tuple(want.shape)}"
        if (dim := _shared_dim(got.shape, got.stride)) is not None and (
            _shared_dim(want.shape, want.stride()) is None
        ):
            return (
                f"{where} has stride 0 in dimension {dim}: its elements share memory, the "
                "reference's lie apart. Write them all, for example with .contiguous()"
            )
        if torch.device(got.device).type != torch.device(device).type:
            return f"{where} is on {got.device}; the inputs are on {device}"
    return None


def _shared_dim(shape: Sequence[int], stride: Sequence[int]) -> int | None:
    """A dimension along which all elements are one and the same in memory (an expanded tensor)."""
    pairs = enumerate(zip(shape, stride, strict=False))
    return next((dim for dim, (size, step) in pairs if size > 1 and step == 0), None)


def compare(
    actual: torch.Tensor,
    exact: torch.Tensor,
    eager: torch.Tensor,
    bound: Bound,
    *,
    output: int = 0,
    quick: bool = False,
) -> Comparison:
    """Compare one floating output element by element against ``bound``.

    Where eager and float64 disagree on being finite (overflow), the problem has no answer and the
    position is skipped. quick: stop at the first chunk with an error, for answers of which only
    pass or fail matters.
    """
    tally = _Tally(bound, output)
    with threads_for(exact):
        chunks = _chunks(actual, exact, eager, bound.atol, group_dim=bound.group_dim)
        if quick:
            for chunk in chunks:
                tally.add(chunk, tally.within(chunk))
                if tally.wrong:
                    break
        else:
            listed = list(chunks)
            for chunk, seen in zip(listed, side_by_side(tally.within, listed), strict=True):
                tally.add(chunk, seen)
    return tally.result(exact.numel())


class _Tally:
    """Accumulates errors over the chunks of one output."""

    def __init__(self, bound: Bound, output: int) -> None:
        self.bound = bound
        self.output = output
        self.max_abs = 0.0
        self.wrong = 0
        self.nonfinite = ""
        self.mismatches: list[Mismatch] = []
        self.squares = torch.zeros_like(bound.atol)
        self.counts = torch.zeros_like(bound.atol)

    def within(self, chunk: Chunk) -> Errors | None:
        """The chunk's errors if all are finite and within the bound. Changes nothing."""
        _, actual, exact, _, atol = chunk
        error = (actual.to(device=exact.device, dtype=torch.float64) - exact).abs_()
        if not error.numel():
            return 0.0, error
        room = torch.add(atol, exact.abs(), alpha=self.bound.rtol).sub_(error)
        # One number instead of a tensor of booleans: NaN, from what is not finite, is not >= 0.
        return self._errors(error) if bool(room.min() >= 0) else None

    def add(self, chunk: Chunk, seen: Errors | None) -> None:
        """Count a chunk; ``seen`` is what :meth:`within` said of it."""
        start, actual, exact, eager, atol = chunk
        if seen is not None:
            self._count(start, seen, exact.numel())
            return
        a = actual.to(device=exact.device, dtype=torch.float64)
        limit = torch.add(atol, exact.abs(), alpha=self.bound.rtol)
        finite = torch.isfinite(exact)
        comparable = finite == torch.isfinite(eager)
        error = torch.where(finite & comparable, (a - exact).abs_(), 0.0)
        # Written so that a NaN error counts as wrong.
        bad = finite & comparable & ~(error <= limit)
        same_kind = (a == exact) | (a.isnan() & exact.isnan())
        bad |= ~finite & comparable & ~same_kind
        known = self._errors(torch.where(torch.isfinite(error), error, 0.0))
        if known is not None:
            self._count(start, known, exact.numel())
        if bool(bad.any()):
            self._note(start, bad, a, exact, limit)

    def _errors(self, error: torch.Tensor) -> Errors | None:
        """Largest error and sums of squares by group; None if an error is not finite."""
        largest = float(error.max())  # NaN if there is one
        if not math.isfinite(largest):
            return None
        others = [d for d in range(error.dim()) if d != self.bound.group_dim]
        squares = error.square()
        return largest, squares.sum(dim=others, keepdim=True) if others else squares

    def _count(self, start: tuple[int, int], seen: Errors, elements: int) -> None:
        largest, squares = seen
        if not elements:
            return
        self.max_abs = max(self.max_abs, largest)
        offset, dim = start
        total, counts = self.squares, self.counts
        if self.bound.group_dim == dim:
            total, counts = (t.narrow(dim, offset, squares.shape[dim]) for t in (total, counts))
        total += squares
        counts += elements / squares.numel()

    def _note(
        self,
        start: tuple[int, int],
        bad: torch.Tensor,
        actual: torch.Tensor,
        exact: torch.Tensor,
        limit: torch.Tensor,
    ) -> None:
        self.wrong += int(bad.sum())
        offset, dim = start
        limit = limit.expand_as(exact)
        for position in torch.nonzero(bad)[: max(0, SHOWN - len(self.mismatches))].tolist():
            got, want = float(actual[tuple(position)]), float(exact[tuple(position)])
            index = list(position)
            if index:
                index[dim] += offset
            if not math.isfinite(got) or not math.isfinite(want):
                self.nonfinite = self.nonfinite or f"{got} where the reference has {want:.6g}"
            self.mismatches.append(
                Mismatch(
                    output=self.output,
                    index=tuple(index),
                    expected=_finite(want),
                    actual=_finite(got),
                    allowed=_finite(float(limit[tuple(position)])),
                )
            )

    def result(self, total: int) -> Comparison:
        scale = self.bound.scale
        return Comparison(
            reason=self._reason(total),
            max_abs_error=self.max_abs,
            max_rel_error=self.max_abs / scale if scale > 0 else self.max_abs,
            wrong=self.wrong,
            total=total,
            mismatches=tuple(self.mismatches),
        )

    def _reason(self, total: int) -> str:
        if self.wrong:
            detail = f", first: {self.nonfinite}" if self.nonfinite else ""
            return f"{self.wrong} of {total} elements differ by more than allowed{detail}"
        if not total:
            return ""
        rms = (self.squares / self.counts.clamp_min(1)).sqrt()
        excess = rms / self.bound.rms
        worst = int(excess.argmax())
        if float(excess.flatten()[worst]) <= 1.0:
            return ""
        got, limit = float(rms.flatten()[worst]), float(self.bound.rms.flatten()[worst])
        where = "" if self.bound.group_dim is None else (
            f" in slice {worst} of dimension {self.bound.group_dim}")  # fmt: skip
        return f"RMS error {got:.3g}{where} is above the allowed {limit:.3g}"


def compare_exact(
    actual: torch.Tensor, expected: torch.Tensor, *, tolerated: int = 0, output: int = 0
) -> Comparison:
    """Compare an integer or boolean output: equal everywhere but at ``tolerated`` positions."""
    bad = actual.to(expected.device) != expected
    wrong = int(bad.sum())
    positions = torch.nonzero(bad)[:SHOWN].tolist() if wrong > tolerated else []
    mismatches = tuple(
        Mismatch(
            output=output,
            index=tuple(p),
            expected=float(expected[tuple(p)]),
            actual=float(actual[tuple(p)]),
            allowed=0.0,
        )
        for p in positions
    )
    return Comparison(
        reason=f"{wrong} of {expected.numel()} elements differ" if wrong > tolerated else "",
        wrong=wrong,
        total=expected.numel(),
        mismatches=mismatches,
    )


def merge(comparisons: Sequence[Comparison]) -> Comparison:
    """The worst of several outputs: the first reason, the largest errors."""
    failed = [c for c in comparisons if not c.passed]
    return Comparison(
        reason=failed[0].reason if failed else "",
        max_abs_error=max((c.max_abs_error for c in comparisons), default=0.0),
        max_rel_error=max((c.max_rel_error for c in comparisons), default=0.0),
        wrong=sum(c.wrong for c in failed),
        total=sum(c.total for c in comparisons),
        mismatches=failed[0].mismatches if failed else (),
    )


def _chunks(
    actual: torch.Tensor,
    exact: torch.Tensor,
    eager: torch.Tensor,
    atol: torch.Tensor,
    *,
    group_dim: int | None,
) -> Iterator[Chunk]:
    """Slices along the longest dimension."""
    most = piece_elements(exact)
    if exact.numel() <= most or exact.dim() == 0:
        yield (0, 0), actual, exact, eager, atol
        return
    dim = max(range(exact.dim()), key=lambda d: exact.shape[d])
    step = max(1, most * exact.shape[dim] // exact.numel())
    for offset in range(0, exact.shape[dim], step):
        size = min(step, exact.shape[dim] - offset)
        parts = [t.narrow(dim, offset, size) for t in (actual, exact, eager)]
        limit = atol.narrow(dim, offset, size) if dim == group_dim else atol
        yield (offset, dim), parts[0], parts[1], parts[2], limit


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
