"""What a call does besides answering: to its inputs, to buffers, and to answers given before.

The reference decides what is legal: an input that it updates in place is part of the answer, and
one that it leaves alone is nobody's scratch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from kernelpro.evaluation.expectation import Expectation
from kernelpro.evaluation.integrity import Findings
from kernelpro.evaluation.parameters import StateMap
from kernelpro.evaluation.structure import flatten, to_tensor
from kernelpro.isolation.base import Subject, SubjectFailure
from kernelpro.schema.outcome import Stage, Status

RTOL, ATOL = 1e-4, 1e-5
"""``torch.testing``'s float32 bounds, widened to a sum's reordering; the latter times the RMS."""
RTOL_HALF = 2.0**-6
"""Two units of bfloat16's last place."""
KEPT_BYTES = 64 << 20
"""Chosen. An answer up to this size is held until the end."""


def examine_inputs(
    findings: Findings, subject: Subject, calls: Sequence[tuple[int, Expectation]]
) -> None:
    """Inputs, as they are after their calls, against what was sent; of a reference that updates
    them in place, against what its own call leaves behind (``SubjectFailure`` if they differ)."""
    for call, expected in calls:
        now = subject.read_inputs(call).tensors
        if expected.traits.mutates_inputs:
            _updated_inputs(call, expected, [to_tensor(raw) for raw in now])
            continue
        sent = flatten(expected.draw.inputs).tensors
        for index, (before, raw) in enumerate(zip(sent, now, strict=True)):
            if not same_bytes(before, raw.data):
                findings.failed("input_mutation", f"forward changed input {index}")
                return
    told = "they are updated in place, as the reference does"
    updates = any(expected.traits.mutates_inputs for _, expected in calls)
    findings.passed("input_mutation", told if updates else "")


def _updated_inputs(call: int, expected: Expectation, now: Sequence[torch.Tensor]) -> None:
    reference, current = expected.reference, expected.reference.loaded
    reference.load_state(expected.state)
    wanted = reference.updated_inputs(expected.draw.inputs)
    reference.load_state(current)
    for index, (got, want) in enumerate(zip(now, wanted, strict=True)):
        if not alike(got, want.to(got.device)):
            raise SubjectFailure(
                Status.WRONG_RESULT, Stage.VERIFY,
                f"Input {index} is not what the reference leaves behind: its forward updates its "
                f"arguments in place, and callers rely on that. Write input {index} in forward as "
                "the reference does.",
            )  # fmt: skip


def examine_buffers(
    subject: Subject, state_map: StateMap, wanted: Mapping[str, torch.Tensor]
) -> None:
    """Running statistics after one call against what the reference's call leaves behind."""
    theirs = {ref: own for own, ref in state_map.names.items()}
    now = subject.read_state()
    for name, value in wanted.items():
        got = to_tensor(now[theirs[name]]) if theirs[name] in now else None
        if got is None or not alike(got, value.to(got.device)):
            raise SubjectFailure(
                Status.WRONG_RESULT,
                Stage.VERIFY,
                f"The buffer {theirs[name]!r} is not updated by forward as the reference "
                f"updates {name!r} (training-mode running statistics). Update it in forward.",
            )


class KeptAnswer:
    """The first answer, held in the subject's process while all later calls are made."""

    def __init__(self) -> None:
        self._kept: tuple[torch.Tensor, ...] = ()

    def keep(self, subject: Subject, call: int, tensors: Sequence[torch.Tensor],
             expected: Expectation) -> None:  # fmt: skip
        """Hold it, unless it is large or may share memory with what is rewritten meanwhile."""
        if expected.traits.shares_memory or sum(t.nbytes for t in tensors) > KEPT_BYTES:
            return
        subject.keep(call)
        self._kept = tuple(tensors)

    def examine(self, findings: Findings, subject: Subject) -> None:
        """Is it still what it was?"""
        if not self._kept:
            return
        now = subject.read_kept().tensors
        pairs = zip(self._kept, now, strict=True)
        if len(now) != len(self._kept) or not all(same_bytes(t, raw.data) for t, raw in pairs):
            findings.failed(
                "output_aliasing",
                "an answer that was kept has been overwritten by a much later call; a caller may "
                "keep any number of them, so return new memory every time",
            )


def same_bytes(tensor: torch.Tensor, data: torch.Tensor) -> bool:
    """Is ``data``, of uint8, what ``tensor`` holds in row-major order?"""
    own = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    return torch.equal(own.to(data.device), data)


def alike(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Equal integers; floating values within the bounds above."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return False
    if not (wanted.is_floating_point() or wanted.is_complex()):
        return torch.equal(got, wanted)
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    a, b = got.to(wide), wanted.to(wide)
    finite = torch.where(torch.isfinite(b), b, 0.0)
    scale = float(finite.abs().square().mean().sqrt()) if b.numel() else 0.0
    rtol = RTOL if wanted.dtype.itemsize >= 4 else RTOL_HALF
    return torch.allclose(a, b, rtol=rtol, atol=max(ATOL, rtol * scale), equal_nan=True)
