"""Turns small modules into playbook candidates and runs them next to the reference."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.cpu.body import cpu_body
from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.plan.ir import Plan
from kernelpro.schema.problem import Problem
from kernelpro.text import content_hash

HEADER = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def problem(forward: str, inputs: str, init: str = "pass", name: str = "case") -> Problem:
    """A problem whose ``forward`` takes the names assigned in ``inputs`` (``x = ...; y = ...``)."""
    names = [part.split("=")[0].strip() for part in inputs.split(";")]
    source = (
        f"{HEADER}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{textwrap.indent(init, ' ' * 8)}\n\n    def forward(self, {', '.join(names)}):\n"
        f"{textwrap.indent(forward, ' ' * 8)}\n\ndef get_inputs():\n"
        f"{textwrap.indent(inputs.replace('; ', chr(10)), ' ' * 4)}\n"
        f"    return [{', '.join(names)}]\n\ndef get_init_inputs():\n    return []\n"
    )
    return Problem(name=name, source=source, source_hash=content_hash(source))


def build(given: Problem, knobs: CpuKnobs | None = None) -> tuple[str, tuple[Plan, ...]]:
    """The candidate's source and its plans."""
    knobs = knobs or CpuKnobs()
    plans = tuple(make_plan(g, knobs.grouping) for g in export_graphs(given))
    bodies = [cpu_body(plan, knobs, i) for i, plan in enumerate(plans)]
    return candidate_source(given, plans, bodies, "test"), plans


def load(source: str) -> dict[str, Any]:
    """Execute a candidate file."""
    namespace: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(source, "candidate.py", "exec"), namespace)
    return namespace


def flat(value: Any) -> list[torch.Tensor]:
    """Output tensors in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    return [t for item in items for t in flat(item)]


def compare(
    given: Problem, knobs: CpuKnobs | None = None, *, seed: int = 0,
    spoil: Callable[[list[Any]], None] | None = None,
) -> tuple[Plan, ...]:  # fmt: skip
    """Assert that the candidate takes its native path and agrees with the reference.

    The bound: four times the reference's own float32 error against float64, plus 2e-6 of the
    output's largest magnitude. ``spoil`` may plant values in the inputs.
    """
    source, plans = build(given, knobs)
    module = load(source)
    torch.manual_seed(seed)
    inputs = module["get_inputs"]()
    if spoil is not None:
        spoil(inputs)
    torch.manual_seed(seed)
    reference = module["Model"](*module["get_init_inputs"]())
    torch.manual_seed(seed)
    candidate = module["ModelNew"](*module["get_init_inputs"]())
    assert list(reference.state_dict()) == list(candidate.state_dict())
    kept = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
    with torch.no_grad():
        assert candidate._fits_0(tuple(inputs)) is not None, "native path not taken"
        actual = flat(candidate(*inputs))
        for before, after in zip(kept, inputs, strict=True):
            if isinstance(before, torch.Tensor):
                assert torch.equal(before.nan_to_num(), after.nan_to_num()), "input changed"
        expected = flat(reference(*inputs))
        exact = flat(reference.double()(*[_double(i) for i in kept]))
    assert len(actual) == len(expected)
    for got, want, best in zip(actual, expected, exact, strict=True):
        _close(got, want, best)
    return plans


def _double(value: Any) -> Any:
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def _close(got: torch.Tensor, want: torch.Tensor, best: torch.Tensor) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if not got.is_floating_point():
        assert torch.equal(got, want), (got, want)
        return
    # Torch's vectorised float32 sometimes gives NaN where the exact result is infinite.
    settled = want.isnan() == best.isnan()
    assert torch.equal(got.isnan()[settled], want.isnan()[settled]), "NaN in different places"
    infinite = want.isinf() & settled
    assert torch.equal(got[infinite], want[infinite])
    fine = ~(want.isnan() | infinite | got.isnan())
    if not fine.any():
        return
    got64, want64, best64 = (t.double()[fine] for t in (got, want, best))
    own = (want64 - best64).abs()
    own[own.isnan()] = 0
    unit = 2e-6 if want.dtype is torch.float32 else torch.finfo(want.dtype).eps * 2
    allowed = 4 * own.max() + unit * want64.abs().max()
    worst = (got64 - want64).abs().max()
    assert worst <= allowed, f"off by {worst:.3g}, allowed {allowed:.3g}"
