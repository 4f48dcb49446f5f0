"""KernelBench's verdict: the problem's own inputs and weights, one fixed tolerance.

Reproducible by others; stands beside the strict verdict, never in its place.
"""

from __future__ import annotations

import torch

from kernelpro.evaluation.expectation import Expectation, Judgement

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""atol = rtol by dtype (KernelBench since v0.2) ..."""
DEFAULT_TOLERANCE = 1e-4
"""... and for float32 and everything else."""


def official_pass(judgement: Judgement, expected: Expectation) -> bool:
    """True if every output is ``allclose`` to eager's in the problem's own dtype."""
    if judgement.contract:
        return False
    return close(judgement.tensors, expected)


def close(
    tensors: tuple[torch.Tensor, ...], expected: Expectation, *, limit: float | None = None
) -> bool:
    """``allclose`` of every output to eager's, with atol = rtol = ``limit`` (None = official)."""
    return all(
        _close(actual.to(eager.device), eager, limit)
        for actual, eager in zip(tensors, expected.eager.tensors, strict=True)
    )


def _close(actual: torch.Tensor, eager: torch.Tensor, limit: float | None) -> bool:
    tolerance = TOLERANCE.get(eager.dtype, DEFAULT_TOLERANCE) if limit is None else limit
    return bool(torch.allclose(actual.to(eager.dtype), eager, atol=tolerance, rtol=tolerance))
