"""The error bound of one output, derived from the problem instead of a constant.

For an output ``r`` (float64 reference) and precision class ``c`` an element may differ by

    allowed_i = max(SAFETY * max(noise_c[g], alone_c[g]), TAIL_SAFETY * peak_c[g])
                + SAFETY * relative_c * |r_i|

with g the group of i, ``peak`` the largest measured error of class c in the group and ``alone`` the
RMS over its inexact elements only (where a function saturates, few elements carry all of the error
and the RMS over the group says nothing about them; behind a ReLU a slice may have a handful),
and the RMS error of a group ``g`` with enough inexact elements by ``RMS_SAFETY * noise_c[g]``.
Groups are the slices along the most uneven of the first, second and last dimension, or the whole
output where it is even. The noise of a group is the largest of

- the measured error of class ``c``: RMS of (what that arithmetic gives - r) over the group.
  ``strict`` is the problem's own eager run; ``tf32`` and ``half`` are the float64 reference with
  operands rounded to 10 and 7 mantissa bits (``arithmetic.Watch``);
- the group's scale (RMS of r) times the median over groups of that error per scale: a group
  whose own few samples happened to round well must not be held to its luck;
- the group's scale times a floor: ``max(FLOOR[dtype], u * sqrt(K))`` for ``strict``, K the
  longest sum: reordering a sum of K terms moves it by at most ``lambda * sqrt(K) * u`` with
  high probability (Higham and Mary 2019, "A new approach to probabilistic rounding error
  analysis"), u the unit roundoff. ``tf32``: ``2^-11 / sqrt(K)`` (K independent operand
  roundings average); ``half``: ``2^-8`` (the result itself is stored in bfloat16).

The classes are nested: the noise of a looser class is never below that of a stricter one.
Pure arithmetic on tensors: runs no model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from kernelpro.evaluation.moments import Sums, gather, peaks
from kernelpro.schema.problem import Precision

CLASSES: tuple[Precision, ...] = ("strict", "tf32", "half")
"""From exact to coarse; a problem that allows one class allows those before it."""

SAFETY = 8.0
"""Chosen. A normal error of 1e8 elements peaks near 6 sigma; TF32 and bfloat16 noise differ by 8,
so a bfloat16 kernel (peak >= 40 TF32 sigmas) cannot pass as TF32."""
TAIL_SAFETY = 4.0
"""Chosen. Largest errors fluctuate more than RMS errors; classes are told apart by the latter."""
RMS_SAFETY = 3.0
"""Chosen. The RMS of many errors hardly fluctuates: 3 is another algorithm, not chance."""
FLOOR: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 1.3e-6,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
"""Relative noise granted to strict kernels by output dtype. float32: ``torch.testing``'s rtol,
room for vector exp and rsqrt of a few ulp. Halves: their unit roundoff. float64: chosen."""
UNIT_ROUNDOFF: dict[torch.dtype, float] = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}
TF32_ROUNDOFF = 2.0**-11
HALF_ROUNDOFF = 2.0**-8
UNEVEN = 4.0
"""Chosen. Slices whose scales differ by more than this get bounds of their own."""
GROUP_MIN = 64
"""Chosen. Fewer elements than this give no reliable RMS. Of an error only inexact elements count:
two honest kernels differ by more than ``RMS_SAFETY`` in the error of a few (seen on an H200 between
cuBLAS algorithms, behind a ReLU)."""
SMALL_GROUP = 1e-4
"""Chosen. No group is held to a scale below this share of the output's."""
TINY = 4.0 * 2.0**-126
"""A few times the smallest normal float32: flushing denormals is allowed."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What one output may differ by under one class. Tensors are float64 and broadcast."""

    precision: Precision
    atol: torch.Tensor
    rtol: float
    rms: torch.Tensor
    """Largest RMS error of each group; infinite where too few elements say what is usual."""
    scale: float
    """RMS of the reference output."""
    group_dim: int | None
    noise: float
    """Relative noise (median over groups) the bound was made from."""

    def summary(self) -> dict[str, float]:
        """What an Outcome records: typical ``atol``, ``rtol`` and their origin."""
        return {
            "atol": float(self.atol.median()),
            "rtol": self.rtol,
            "scale_rms": self.scale,
            "relative_noise": self.noise,
            "safety": SAFETY,
        }


def allowed(problem: Precision) -> tuple[Precision, ...]:
    """Classes a problem of this precision accepts."""
    return CLASSES[: CLASSES.index(problem) + 1]


def bounds(
    exact: torch.Tensor,
    eager: torch.Tensor,
    rounded: Mapping[Precision, torch.Tensor],
    *,
    reduction_length: int,
    magnitude: Callable[[], float] = lambda: 1.0,
) -> dict[Precision, Bound]:
    """Bounds of one floating output for ``strict`` and the classes in ``rounded``.

    exact: float64 reference; eager: the problem's own run; both of the output's shape.
    magnitude: gives the RMS of the inputs, the scale of last resort for an output that is all
    zeros.
    """
    answers = {"strict": eager} | {str(name): value for name, value in rounded.items()}
    sums = gather(exact, answers)
    group_dim = _uneven_dim(sums, exact.shape)
    overall = float(sums.rms("exact", None))
    scales = sums.rms("exact", group_dim).clamp_min(SMALL_GROUP * overall)
    if overall == 0.0:
        scales = torch.full_like(scales, max(UNIT_ROUNDOFF[torch.float32] * magnitude(), TINY))
    result: dict[Precision, Bound] = {}
    least: tuple[torch.Tensor, ...] | None = None
    for precision in CLASSES:
        if precision not in answers:
            continue
        floor = _floor(precision, eager.dtype, reduction_length)
        measured = sums.rms(precision, group_dim)
        relative = max(float((measured / scales).median()), floor)
        noise = torch.maximum(measured, relative * scales)
        peak, inexact = peaks(exact, answers[precision], group_dim)
        alone = _of_one(measured, sums.counts[group_dim], inexact)
        limit = torch.maximum(SAFETY * torch.maximum(noise, alone), TAIL_SAFETY * peak)
        least = (
            (noise, limit) if least is None else tuple(map(torch.maximum, least, (noise, limit)))
        )
        result[precision] = _bound(precision, least, inexact, relative, overall, group_dim)
    return result


def _of_one(measured: torch.Tensor, counts: torch.Tensor, inexact: torch.Tensor) -> torch.Tensor:
    """RMS error of the elements of each group that have an error at all; of all groups' together
    where a group has fewer than ``GROUP_MIN``."""
    squares = measured.square() * counts
    together = (squares.sum() / inexact.sum().clamp_min(1)).sqrt()
    own = (squares / inexact.clamp_min(1)).sqrt()
    return torch.where(inexact >= GROUP_MIN, own, torch.maximum(own, together))


def _bound(
    precision: Precision,
    least: tuple[torch.Tensor, ...],
    inexact: torch.Tensor,
    relative: float,
    scale: float,
    group_dim: int | None,
) -> Bound:
    noise, limit = least
    rms = torch.where(inexact >= GROUP_MIN, RMS_SAFETY * noise + TINY, torch.inf)
    return Bound(
        precision=precision,
        atol=limit + TINY,
        rtol=SAFETY * relative,
        rms=rms,
        scale=scale,
        group_dim=group_dim,
        noise=relative,
    )


def _floor(precision: Precision, dtype: torch.dtype, reduction_length: int) -> float:
    root = math.sqrt(max(1, reduction_length))
    strict = max(FLOOR.get(dtype, FLOOR[torch.float32]),
                 UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF[torch.float32]) * root
                 if dtype in (torch.float32, torch.float64)
                 else UNIT_ROUNDOFF[torch.float32] * root)  # fmt: skip
    if precision == "tf32":
        return max(strict, TF32_ROUNDOFF / root)
    if precision == "half":
        return max(strict, HALF_ROUNDOFF)
    return strict


def _uneven_dim(sums: Sums, shape: torch.Size) -> int | None:
    """The dimension whose slices differ most in scale, if any differ by more than ``UNEVEN``."""
    best, chosen = UNEVEN, None
    for dim in sums.dims:
        if shape[dim] < 2 or shape.numel() // shape[dim] < GROUP_MIN:
            continue
        slices = sums.rms("exact", dim)
        high = float(slices.max())
        spread = high / max(float(slices.min()), 1e-3 * high) if high > 0 else 1.0
        if spread > best:
            best, chosen = spread, dim
    return chosen
