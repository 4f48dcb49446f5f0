"""What lint looks at, one probe a function, each returning plain numbers. Labels come later."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from kernelpro.errors import UserError
from kernelpro.evaluation import controls, official
from kernelpro.evaluation.expectation import Expectation, real
from kernelpro.evaluation.reference import Reference, map_tensors
from kernelpro.evaluation.structure import flatten
from kernelpro.evaluation.tolerance import CLASSES
from kernelpro.schema.problem import Precision

LOOSE = 1e-2
"""The tolerance of KernelBench before v0.2 and of the KernelPro paper."""
TIMED_CALLS = 7
TAIL_PARTS = (8, 64)


def controls_passing(
    expected: Expectation, other: Expectation, other_weights: Expectation | None, allowed: Precision
) -> dict[str, list[str]]:
    """Controls that pass under three tolerances: ``official``, ``loose`` and ``strict``."""
    answers = list(controls.wrong_answers(expected, other, other_weights))
    return {
        "official": [name for name, t in answers if official.close(t, expected)],
        "loose": [name for name, t in answers if official.close(t, expected, limit=LOOSE)],
        "strict": controls.passing(expected, other, other_weights, allowed),
    }


def input_tails(expected: Expectation) -> dict[str, list[int]]:
    """Input number -> parts k such that zeroing all but the first 1/k of its longest dimension
    changes nothing under the official tolerance."""
    inputs = expected.draw.inputs
    found: dict[str, list[int]] = {}
    for index, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.dim():
            continue
        dim = max(range(value.dim()), key=lambda d: value.shape[d])
        for part in TAIL_PARTS:
            if value.shape[dim] < 2 * part:
                continue
            cut = value.clone()
            kept = value.shape[dim] // part
            cut.narrow(dim, kept, value.shape[dim] - kept).zero_()
            changed = [cut if i == index else v for i, v in enumerate(inputs)]
            answer = expected.reference.eager(changed).tensors
            if official.close(answer, expected):
                found.setdefault(str(index), []).append(part)
    return found


def scales(expected: Expectation) -> list[dict[str, float]]:
    """Per floating output: largest magnitude, RMS, share of entries below the official atol."""
    result = []
    for tensor in expected.eager.tensors:
        if not tensor.is_floating_point() and not tensor.is_complex():
            continue
        x = real(tensor).to(torch.float64)
        x = x[torch.isfinite(x)]
        limit = official.TOLERANCE.get(tensor.dtype, official.DEFAULT_TOLERANCE)
        result.append(
            {
                "max": float(x.abs().max()) if x.numel() else 0.0,
                "rms": float(x.square().mean().sqrt()) if x.numel() else 0.0,
                "share_below_atol": float((x.abs() < limit).double().mean()) if x.numel() else 1.0,
            }
        )
    return result


def errors(expected: Expectation) -> dict[str, float]:
    """RMS error against float64 over the output's RMS, by arithmetic: eager, tf32, half."""
    found = {"eager": _relative_error(expected.eager.tensors, expected.exact.tensors)}
    for name in CLASSES[1:]:
        flat = expected.in_arithmetic(name)
        if flat is not None:
            found[name] = _relative_error(flat.tensors, expected.exact.tensors)
    return found


def gradients(reference: Reference, inputs: Sequence[Any]) -> dict[str, Any]:
    """Parameters and inputs that no output depends on: gradient missing or exactly zero.

    ``{"missing": reason}`` if the reference cannot be differentiated.
    """
    model = reference.model
    given = map_tensors(list(inputs), _leaf)
    leaves = [t for t in flatten(given).tensors if t.requires_grad]
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    try:
        with reference.module.running("differentiating the reference"), torch.enable_grad():
            outputs = flatten(model(*given)).tensors
            total = sum((real(t) * torch.randn_like(real(t))).sum() for t in outputs
                        if t.requires_grad)  # fmt: skip
            if not isinstance(total, torch.Tensor):
                return {"missing": "no output has a gradient"}
            torch.autograd.backward(total)
    except UserError as error:
        return {"missing": str(error).splitlines()[0]}
    finally:
        with torch.no_grad():
            for name, value in model.named_buffers():
                value.copy_(buffers[name])
    dead = [n for n, p in model.named_parameters() if _no_gradient(p)]
    dead_inputs = [i for i, leaf in enumerate(leaves) if _no_gradient(leaf)]
    model.zero_grad(set_to_none=True)
    return {
        "dead_parameters": dead,
        "dead_inputs": dead_inputs,
        "differentiable_inputs": len(leaves),
        "parameters": sum(1 for _ in model.parameters()),
    }


def eager_us(reference: Reference, inputs: Sequence[Any]) -> float:
    """Quickest of a few eager calls, in microseconds, host clock around a synchronised call."""
    best = float("inf")
    with torch.no_grad():
        for _ in range(TIMED_CALLS):
            given = map_tensors(list(inputs), torch.Tensor.clone)
            _synchronize(reference.device)
            start = time.perf_counter_ns()
            reference.model(*given)
            _synchronize(reference.device)
            best = min(best, (time.perf_counter_ns() - start) / 1e3)
    return best


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    copy = tensor.detach().clone()
    return copy.requires_grad_() if copy.is_floating_point() else copy


def _no_gradient(tensor: torch.Tensor) -> bool:
    return tensor.grad is None or not bool(tensor.grad.any())


def _relative_error(tensors: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    worst = 0.0
    for got, want in zip(tensors, exact, strict=True):
        if not (want.is_floating_point() or want.is_complex()):
            continue
        a, r = real(got).to(torch.float64), real(want).to(torch.float64)
        finite = torch.isfinite(a) & torch.isfinite(r)
        if not bool(finite.any()):
            continue
        scale = float(r[finite].square().mean().sqrt())
        error = float((a - r)[finite].square().mean().sqrt())
        worst = max(worst, error / scale if scale > 0 else error)
    return worst
