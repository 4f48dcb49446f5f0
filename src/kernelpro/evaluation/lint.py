"""Task lint: labels problems on which a speed-up proves little, before any budget is spent.

Follows EVAL_PITFALLS H.7. A label says that a wrong answer passes the *official* tolerance on the
problem's own inputs, or that the problem is random, non-finite, partly dead, or too small to
time; the evidence also says what passes kernelpro's strict bound. Runs the reference only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelpro.evaluation import lint_probes as probes
from kernelpro.evaluation.expectation import Drawer, Expectation
from kernelpro.evaluation.parameters import jittered
from kernelpro.evaluation.reference import Reference, all_finite, seeded
from kernelpro.schema.codec import CONFIG
from kernelpro.schema.hardware import Device
from kernelpro.schema.labels import LABELS
from kernelpro.schema.problem import Problem

TOO_SMALL_US = 50.0
"""Below this a call is launch and dispatch overhead (EVAL_PITFALLS H.7)."""
SEEDS = (1, 2)
"""Fixed: the same problem gets the same labels on every run."""

BY_CONTROL = {
    "zeros": "zero",
    "mean": "constant",
    "channel_mean": "constant",
    "first_row": "constant",
    "stale": "input_independent",
    "other_weights": "weight_independent",
    "input": "identity",
    "affine": "affine",
    "truncated_8": "truncatable",
    "truncated_64": "truncatable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """Labels of one problem and the numbers behind them."""

    labels: tuple[str, ...]
    """Names from ``LABELS``; empty for a healthy problem."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """Probe -> numbers, as JSON."""
    seconds: float = 0.0

    __pydantic_config__ = CONFIG


def lint_problem(problem: Problem, device: Device) -> LintReport:
    """Labels and evidence for ``problem``. ``UserError`` if its reference does not run."""
    started = time.perf_counter()
    reference = Reference(problem, device.id, construction_seed=SEEDS[0])
    inputs = reference.draw(SEEDS[0])
    traits = reference.traits(inputs)
    evidence: dict[str, Any] = {"stochastic": traits.stochastic}
    found = {"stochastic"} if traits.stochastic else set()
    if traits.stochastic:
        reference.use_evaluation_mode()
        traits = reference.traits(inputs)
        evidence["random_in_evaluation_mode"] = traits.stochastic
    drawer = Drawer(reference, traits)
    expected = drawer.answer(drawer.draw("default", SEEDS[0]))
    found |= _answers(expected, drawer, evidence)
    found |= _structure(expected, evidence)
    evidence["float64_missing"] = reference.float64_missing
    return LintReport(
        labels=tuple(label for label in LABELS if label in found),
        evidence=evidence,
        seconds=round(time.perf_counter() - started, 3),
    )


def _answers(expected: Expectation, drawer: Drawer, evidence: dict[str, Any]) -> set[str]:
    """Labels from wrong answers that pass."""
    tensors = [t for t in expected.eager.tensors if t.is_floating_point() or t.is_complex()]
    evidence["scales"] = probes.scales(expected)
    if not all_finite(tensors):
        share = [float((~torch.isfinite(t)).double().mean()) for t in tensors]
        evidence["nonfinite_share"] = share
        return {"nonfinite"}
    reference = drawer.reference
    other = drawer.answer(drawer.draw("default", SEEDS[1]))
    changed = None
    if reference.initial_state:
        reference.load_state(_other_weights(reference))
        changed = drawer.answer(expected.draw)
        reference.load_state(expected.state)
    passing = probes.controls_passing(expected, other, changed, reference.problem.precision)
    evidence["controls_passing"] = passing
    evidence["relative_errors"] = probes.errors(expected)
    tails = probes.input_tails(expected)
    evidence["input_tails_unused"] = tails
    found = {BY_CONTROL[name] for name in passing["official"]}
    return found | ({"truncatable"} if tails else set())


def _other_weights(reference: Reference) -> Mapping[str, torch.Tensor]:
    """Another construction's weights, jittered: gains of one are equal in every construction."""
    twin = Reference(reference.problem, reference.device, construction_seed=SEEDS[1])
    buffers = frozenset(name for name, _ in reference.model.named_buffers())
    with seeded(SEEDS[1], reference.device):
        return jittered(twin.initial_state, buffers)


def _structure(expected: Expectation, evidence: dict[str, Any]) -> set[str]:
    """Labels from gradients and from the clock."""
    reference, inputs = expected.reference, expected.draw.inputs
    found = set()
    grads = probes.gradients(reference, inputs)
    evidence["gradients"] = grads
    if grads.get("dead_parameters"):
        found.add("dead_parameters")
    inputs_seen = grads.get("differentiable_inputs", 0)
    if inputs_seen and len(grads["dead_inputs"]) == inputs_seen:
        found.add("input_independent")
    evidence["eager_us"] = probes.eager_us(reference, inputs)
    if evidence["eager_us"] < TOO_SMALL_US:
        found.add("too_small")
    return found
