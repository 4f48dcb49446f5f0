"""Wrong answers nobody computed must fail, and where they pass the task is labelled."""

from __future__ import annotations

import torch
from problems_for_tests import make

from kernelpro.evaluation.controls import insensitive, wrong_answers
from kernelpro.evaluation.expectation import Drawer
from kernelpro.evaluation.official import close
from kernelpro.evaluation.parameters import jittered
from kernelpro.evaluation.reference import Reference
from kernelpro.schema.problem import Problem


def _drawer(problem: Problem) -> Drawer:
    reference = Reference(problem, "cpu", construction_seed=1)
    return Drawer(reference, reference.traits(reference.draw(0)))


def _passing(problem: Problem) -> dict[str, list[str]]:
    drawer = _drawer(problem)
    initial = drawer.reference.initial_state
    states = [initial, jittered(initial, frozenset())] if initial else [initial]
    return insensitive(drawer, states, problem.precision, [1, 2])


def test_no_control_passes_on_a_healthy_task() -> None:
    problem = make("return torch.relu(self.l(x))", "torch.rand(64, 128)",
                   constructor="self.l = torch.nn.Linear(128, 256)")  # fmt: skip
    assert _passing(problem) == {"default": [], "offset": []}


def test_relu_on_the_unit_interval_is_cured_by_other_inputs() -> None:
    found = _passing(make("return torch.relu(x)", "torch.rand(64, 128)"))
    assert "input" in found["default"] and "affine" in found["default"]
    assert found["offset"] == []


def test_an_answer_that_is_always_zero_is_labelled_in_every_family() -> None:
    found = _passing(make("return torch.relu(-x.abs() - 1)", "torch.rand(64, 128)"))
    for family in ("default", "offset"):
        assert {"zeros", "mean", "stale"} <= set(found[family])


def test_every_control_has_the_form_of_the_answer() -> None:
    problem = make("return x * 2, x.sum(0), (x > 0.5).sum()", "torch.rand(200, 300)")
    drawer = _drawer(problem)
    expected, other = (drawer.answer(drawer.draw("default", s)) for s in (1, 2))
    for name, tensors in wrong_answers(expected, other, other):
        assert [t.shape for t in tensors] == [t.shape for t in expected.eager.tensors], name
        assert [t.dtype for t in tensors] == [t.dtype for t in expected.eager.tensors], name


def test_the_affine_control_knows_only_the_other_draw() -> None:
    drawer = _drawer(make("return 3 * x - 2", "torch.rand(64, 128)"))
    expected, other = (drawer.answer(drawer.draw("default", s)) for s in (1, 2))
    fitted = dict(wrong_answers(expected, other, None))["affine"]
    assert torch.allclose(fitted[0], expected.eager.tensors[0], atol=1e-5)


def test_the_official_tolerance_accepts_what_the_strict_one_refuses() -> None:
    """KernelBench's softmax: zeros pass at 1e-4."""
    drawer = _drawer(make("return torch.softmax(x, -1)", "torch.rand(2, 50000)"))
    expected = drawer.answer(drawer.draw("default", 1))
    zeros = (torch.zeros(2, 50000),)
    assert close(zeros, expected)
    assert not close(zeros, expected, limit=1e-6)
