"""Input families: the problem's own inputs, reshaped in value so that shortcuts show.

The default inputs of many problems are uniform on [0, 1): rectifiers are inert, sums concentrate,
normalisations have known statistics (EVAL_PITFALLS 18, 19, 21, 22 and H.8). A family replaces the
values of floating inputs and keeps what looks like meaning: integers and booleans, labels and
masks (few distinct values), probabilities (rows that sum to one), zero patterns and symmetry.
Whether a family is in the reference's domain is for the caller to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelpro.evaluation.reference import map_tensors

DISTINCT = 8
"""Chosen. A floating input with at most this many distinct values is a label or a mask."""
SAMPLE = 65536
"""Elements looked at to decide what an input means."""

Transform = Callable[[torch.Tensor], torch.Tensor]


def _wide(x: torch.Tensor) -> torch.Tensor:
    return torch.randn_like(x) * 3.0


def _offset(x: torch.Tensor) -> torch.Tensor:
    """Normal with a scale in [1/4, 4] and a shift per sample and channel."""
    lead = list(x.shape[:2]) + [1] * max(0, x.dim() - 2)
    if x.dim() == 2:
        # A matrix has rows and columns that differ, not elements.
        scale = _log_uniform([x.shape[0], 1], x) * _log_uniform([1, x.shape[1]], x).sqrt()
        shift = torch.randn(x.shape[0], 1, device=x.device) + torch.randn(
            1, x.shape[1], device=x.device
        )
    else:
        scale = _log_uniform(lead, x)
        shift = 2.0 * torch.randn(lead, device=x.device)
    return torch.randn_like(x) * scale.to(x.dtype) + shift.to(x.dtype)


def _spiky(x: torch.Tensor) -> torch.Tensor:
    """Small noise with rare large values, one in a thousand and at least one per row."""
    values = torch.randn_like(x) * 0.1
    if x.numel() == 0:
        return values
    row = x.shape[-1] if x.dim() else 1
    rows = x.numel() // row
    count = max(1, row // 1000)
    flat = values.reshape(rows, row)
    where = torch.randint(row, (rows, count), device=x.device)
    height = (8.0 + 24.0 * torch.rand(rows, count, device=x.device)).to(x.dtype)
    sign = torch.where(torch.rand(rows, count, device=x.device) < 0.5, -1.0, 1.0).to(x.dtype)
    return flat.scatter(1, where, height * sign).reshape(x.shape)


def _extreme(x: torch.Tensor) -> torch.Tensor:
    return torch.randn_like(x) * 100.0


def _zeros(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x)


def _ties(x: torch.Tensor) -> torch.Tensor:
    """Normal, rounded to halves: many equal values."""
    return torch.round(torch.randn_like(x) * 2.0) / 2.0


def _near_one(x: torch.Tensor) -> torch.Tensor:
    """1 + small noise: long products neither vanish nor overflow."""
    return 1.0 + 0.01 * torch.randn_like(x)


def _default(x: torch.Tensor) -> torch.Tensor:
    return x


FAMILIES: dict[str, Transform] = {
    "default": _default,
    "wide": _wide,
    "offset": _offset,
    "spiky": _spiky,
    "extreme": _extreme,
    "zeros": _zeros,
    "ties": _ties,
    "near_one": _near_one,
}
"""By name. ``near_one`` is used only where the reference multiplies along a dimension."""

PRODUCTS = frozenset({"prod", "cumprod"})


def applicable(operators: frozenset[str]) -> tuple[str, ...]:
    """Names of the families to try for a reference that uses ``operators``, default first."""
    return tuple(name for name in FAMILIES if name != "near_one" or operators & PRODUCTS)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the values of one floating input stand for, as far as they show it."""

    fixed: bool
    """Labels, masks or probabilities: left as drawn."""
    zeros: bool
    """Exact zeros in a pattern (triangular, banded): kept zero."""
    symmetric: bool
    nonnegative: bool


def meaning(x: torch.Tensor) -> Meaning:
    """Look at one default draw of a floating input."""
    sample = x.reshape(-1)[:SAMPLE]
    distinct = int(torch.unique(sample).numel())
    square = x.dim() >= 2 and x.shape[-1] == x.shape[-2] and x.shape[-1] > 1
    zero_share = float((sample == 0).float().mean()) if sample.numel() else 0.0
    return Meaning(
        fixed=(sample.numel() > DISTINCT and distinct <= DISTINCT) or _probabilities(x),
        zeros=0.05 < zero_share < 1.0 and distinct > DISTINCT,
        symmetric=square and bool(torch.equal(x, x.transpose(-1, -2))),
        nonnegative=bool((sample >= 0).all()),
    )


def transform(family: str, inputs: Sequence[Any], *, positive: bool = False) -> list[Any]:
    """Inputs of ``family`` made from one default draw, with torch's current generator.

    positive: use absolute values, for references defined on non-negative numbers only. Returns
    the very same tensors where nothing changes.
    """
    change = FAMILIES[family]

    def apply(x: torch.Tensor) -> torch.Tensor:
        if family == "default" or not x.is_floating_point() or x.numel() == 0:
            return x
        known = meaning(x)
        if known.fixed:
            return x
        value = change(x.float() if x.dtype.itemsize < 2 else x).to(x.dtype)
        if positive:
            value = value.abs()
        if known.symmetric:
            value = (value + value.transpose(-1, -2)) / 2
        return torch.where(x == 0, torch.zeros_like(value), value) if known.zeros else value

    changed: list[Any] = map_tensors(list(inputs), apply)
    return changed


def _log_uniform(shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    return torch.exp2(4.0 * torch.rand(list(shape), device=like.device) - 2.0)


def _probabilities(x: torch.Tensor) -> bool:
    """Rows that sum to one: the output of a softmax, not free numbers."""
    if x.dim() == 0 or x.shape[-1] < 2:
        return False
    rows = x.reshape(-1, x.shape[-1])[: max(1, SAMPLE // x.shape[-1])]
    sums = rows.sum(-1, dtype=torch.float64)
    return bool((rows >= 0).all()) and bool(((sums - 1.0).abs() < 1e-3).all())
