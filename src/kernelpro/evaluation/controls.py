"""Negative controls: answers nobody computed. If one passes, the task cannot tell right from wrong.

Each control is a wrong output made from the expectations alone: zeros, the mean, a stale answer.
A control that passes does not fail a candidate; it labels the task, and the record says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from kernelpro.evaluation.expectation import (
    Drawer,
    Expectation,
    Skipped,
    passes,
    real,
)
from kernelpro.evaluation.structure import flatten
from kernelpro.schema.problem import Precision

FIT_POINTS = 1 << 20
"""Pairs the affine control is fitted to, evenly spread."""


def passing(
    expected: Expectation,
    other: Expectation | None,
    other_weights: Expectation | None,
    allowed: Precision,
) -> list[str]:
    """Names of the controls that pass as an answer to ``expected`` under class ``allowed``.

    other: another draw of the same family and weights. other_weights: the same inputs under
    other weights (None if the problem has none).
    """
    return [
        name
        for name, tensors in wrong_answers(expected, other, other_weights)
        if passes(tensors, expected, allowed)
    ]


def insensitive(
    drawer: Drawer,
    states: Sequence[Mapping[str, torch.Tensor]],
    allowed: Precision,
    seeds: Sequence[int],
) -> dict[str, list[str]]:
    """Family -> controls that pass, on default and offset inputs.

    states: two sets of weights (one if the reference has none). Leaves the first one loaded. A
    control under every family means: this task cannot tell that wrong answer from a right one.
    """
    result: dict[str, list[str]] = {}
    for family in ("default", "offset"):
        drawer.reference.load_state(states[0])
        first, other = (drawer.expect(family, seed) for seed in seeds[:2])
        if isinstance(first, Skipped) or isinstance(other, Skipped):
            continue
        changed = None
        if len(states) > 1:
            drawer.reference.load_state(states[1])
            changed = drawer.answer(first.draw)
            drawer.reference.load_state(states[0])
        result[family] = passing(first, other, changed, allowed)
    return result


def wrong_answers(
    expected: Expectation, other: Expectation | None, other_weights: Expectation | None
) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """(name, outputs) of every control that the problem has, one at a time."""
    truth = expected.eager.tensors
    yield "zeros", tuple(torch.zeros_like(t) for t in truth)
    yield "mean", tuple(_like(t, _mean(t, None)) for t in truth)
    yield "channel_mean", tuple(_like(t, _mean(t, 1)) for t in truth)
    if any(t.dim() and t.shape[0] > 1 for t in truth):
        yield "first_row", tuple(t[:1].expand_as(t) if t.dim() else t for t in truth)
    for part in (8, 64):
        cut = _truncated(truth, part)
        if cut:
            yield f"truncated_{part}", cut
    if other is not None and _same_form(other.eager.tensors, truth):
        yield "stale", other.eager.tensors
    if other_weights is not None:
        yield "other_weights", other_weights.eager.tensors
    echoed = _matching_inputs(expected)
    if echoed is not None:
        yield "input", tuple(echoed)
    fitted = None if other is None else _affine(expected, other)
    if fitted is not None:
        yield "affine", fitted


def _truncated(truth: tuple[torch.Tensor, ...], part: int) -> tuple[torch.Tensor, ...]:
    """Outputs that are zero after the first 1/part of their longest dimension; () if too short."""
    answers = []
    for t in truth:
        if not t.dim() or max(t.shape) < 2 * part:
            return ()
        dim = max(range(t.dim()), key=lambda d: t.shape[d])
        kept = t.shape[dim] // part
        answers.append(t.clone())
        answers[-1].narrow(dim, kept, t.shape[dim] - kept).zero_()
    return tuple(answers)


def _mean(t: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Mean over everything, or over all dimensions but ``dim`` (over the batch for a vector)."""
    values = real(t)
    if dim is None or t.dim() < 2:
        return values.mean(dtype=torch.float64)
    others = [d for d in range(values.dim()) if d != dim]
    return values.mean(dim=others, keepdim=True, dtype=torch.float64)


def _like(t: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    filled = value.expand(real(t).shape)
    if t.is_complex():
        return torch.view_as_complex(filled.contiguous()).to(t.dtype)
    return filled.to(t.dtype)


def _same_form(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> bool:
    return [t.shape for t in a] == [t.shape for t in b]


def _matching_inputs(expected: Expectation) -> list[torch.Tensor] | None:
    """For each output an input of its shape and dtype; None if one output has none."""
    inputs = flatten(expected.draw.inputs).tensors
    chosen = []
    for truth in expected.eager.tensors:
        fits = [t for t in inputs if t.shape == truth.shape and t.dtype == truth.dtype]
        if not fits:
            return None
        chosen.append(fits[0])
    return chosen


def _affine(expected: Expectation, other: Expectation) -> tuple[torch.Tensor, ...] | None:
    """Straight line through the other draw's (input, output) pairs, applied to this input."""
    now, before = _matching_inputs(expected), _matching_inputs(other)
    if now is None or before is None:
        return None
    answers = []
    for x, x0, y0 in zip(now, before, other.eager.tensors, strict=True):
        if not x.is_floating_point():
            return None
        step = max(1, x0.numel() // FIT_POINTS)
        a, b = (t.reshape(-1)[::step].to(torch.float64) for t in (x0, y0))
        spread = float(a.var(unbiased=False))
        slope = float(((a - a.mean()) * (b - b.mean())).mean()) / spread if spread > 0 else 0.0
        answers.append(x * slope + (float(b.mean()) - slope * float(a.mean())))
    return tuple(answers)
