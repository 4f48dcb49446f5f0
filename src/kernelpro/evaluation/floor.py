"""The physical floor: no honest call is quicker than moving its bytes (EVAL_PITFALLS R5).

Counts only bytes that every correct implementation must move, at the rate the memory level in
play can give. Being generous here costs little: a faked time is usually off by factors.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import torch

from kernelpro.evaluation.arithmetic import SELECTING
from kernelpro.evaluation.expectation import Expectation
from kernelpro.evaluation.structure import flatten
from kernelpro.schema.hardware import Device, Peaks

MARGIN = {"cpu": 0.5, "cuda": 0.9}
"""Chosen. A time below margin x floor is impossible. Measured CPU peaks swing with the machine's
other load (EVAL_PITFALLS 86: by 2x); HBM bandwidth does not."""


CONFIRM_BYTES = 512 << 20
CONFIRM_COPIES, CONFIRM_S = 7, 0.25
"""Chosen. Size, least number and least time of the copies of which the quickest counts before a
time is called impossible: seven small ones may all fall into a moment in which others have the
cores (seen: 0.05 GB/s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Least time of one call, and where it comes from."""

    us: float
    bytes: int
    gb_s: float
    level: str
    """``memory`` or ``cache``."""
    margin: float

    def impossible(self, microseconds: float) -> bool:
        """True if a call cannot take so little."""
        return microseconds < self.margin * self.us

    def share(self, microseconds: float) -> float:
        """Floor over time: 1.0 = running at the bound."""
        return self.us / microseconds


def make_floor(
    expected: Expectation, device: Device, peaks: Peaks | None, *, inputs_matter: bool = True
) -> Floor | str:
    """The floor for one call, or why there is none.

    inputs_matter: False for a degenerate problem whose answer does not depend on its inputs.
    """
    if peaks is None:
        return "the device's bandwidth has not been measured"
    moved = compulsory_bytes(expected, inputs_matter=inputs_matter)
    if moved == 0:
        return "the problem has no bytes that every implementation must move"
    touched = sum(t.nbytes for t in _tensors(expected)) + sum(
        value.nbytes for value in expected.state.values()
    )
    last_level = max(device.l2_bytes or 0, device.l3_bytes or 0)
    cold = touched > 2 * last_level if device.kind == "cpu" else True
    rate = peaks.copy_gb_s if cold else peaks.cache_gb_s
    if rate is None:
        return "inputs and outputs fit the cache, whose bandwidth has not been measured"
    # A copy that misses the cache is never quicker than one that hits it.
    rate = max(rate, peaks.copy_gb_s)
    return Floor(
        us=moved / (rate * 1e3),
        bytes=moved,
        gb_s=rate,
        level="memory" if cold else "cache",
        margin=MARGIN[device.kind],
    )


def confirmed(floor: Floor, device: str) -> Floor:
    """``floor`` at the rate a copy reaches right now, if that is higher than the calibrated one.

    Asked before a candidate is called impossible: a calibration taken on a busy machine is low.
    """
    size = max(1, min(floor.bytes // 2, CONFIRM_BYTES))
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best, copies, began = float("inf"), 0, time.perf_counter()
    while copies < CONFIRM_COPIES or time.perf_counter() - began < CONFIRM_S:
        _synchronize(device)
        start = time.perf_counter()
        target.copy_(source)
        _synchronize(device)
        best = min(best, time.perf_counter() - start)
        copies += 1
    rate = max(floor.gb_s, 2e-9 * size / best)
    return dataclasses.replace(floor, gb_s=rate, us=floor.bytes / (rate * 1e3))


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def compulsory_bytes(expected: Expectation, *, inputs_matter: bool = True) -> int:
    """Inputs read once plus outputs written once, as far as nobody can avoid it.

    Inputs count only if the reference selects nothing from them (an embedding reads a few rows)
    and returns no view; outputs only if they are memory of their own (a transpose costs nothing).
    """
    views = any(t._is_view() for t in expected.eager.tensors)
    unread = views or not inputs_matter or bool(expected.traits.operators & SELECTING)
    inputs = flatten(expected.draw.inputs).tensors
    read = 0 if unread else sum(t.nbytes for t in inputs)
    return read + sum(_written(t) for t in expected.eager.tensors)


def _written(output: torch.Tensor) -> int:
    """Bytes behind an output; 0 for a view, which may share an input's memory."""
    return 0 if output._is_view() else min(output.nbytes, output.untyped_storage().nbytes())


def _tensors(expected: Expectation) -> list[torch.Tensor]:
    return [*flatten(expected.draw.inputs).tensors, *expected.eager.tensors]
