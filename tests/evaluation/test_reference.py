"""The reference in eager, float64 and coarser arithmetic; what a watched run shows."""

from __future__ import annotations

import pytest
import torch
from problems_for_tests import make

from kernelpro.errors import UserError
from kernelpro.evaluation.reference import Reference, seeded
from kernelpro.schema.problem import Problem


def _reference(problem: Problem) -> Reference:
    return Reference(problem, "cpu", construction_seed=3)


def test_float64_is_the_same_computation_in_double() -> None:
    reference = _reference(
        make("return torch.tanh(self.l(x)), x.argmax(-1), x > 0.5", "torch.rand(8, 16)",
             constructor="self.l = torch.nn.Linear(16, 4)")
    )  # fmt: skip
    inputs = reference.draw(1)
    exact, eager = reference.exact(inputs), reference.eager(inputs)
    assert [t.dtype for t in exact.tensors] == [torch.float64, torch.int64, torch.bool]
    assert exact.structure == eager.structure
    layer = reference.model.l
    by_hand = torch.tanh(inputs[0].double() @ layer.weight.double().T + layer.bias.double())
    assert torch.allclose(exact.tensors[0], by_hand, rtol=1e-12, atol=1e-14)
    assert reference.float64_missing == ""


def test_factories_and_plain_tensors_inside_forward_follow_to_float64() -> None:
    reference = _reference(
        make("h = torch.zeros(x.shape[0], 5)\n        return self.cell(x, h) @ self.plain",
             "torch.rand(3, 4)",
             constructor="self.cell = torch.nn.GRUCell(4, 5); self.plain = torch.rand(5, 2)")
    )  # fmt: skip
    exact = reference.exact(reference.draw(1))
    assert reference.float64_missing == "" and exact.tensors[0].dtype == torch.float64
    assert reference.model.plain.dtype == torch.float32
    assert torch.get_default_dtype() == torch.float32


def test_without_double_the_reason_is_recorded_and_eager_stands_in() -> None:
    reference = _reference(
        make("assert x.dtype == torch.float32, 'float32 only'\n        return x * 2",
             "torch.rand(3, 4)")
    )  # fmt: skip
    inputs = reference.draw(1)
    exact = reference.exact(inputs)
    assert "float32 only" in reference.float64_missing
    assert torch.equal(exact.tensors[0], reference.eager(inputs).tensors[0].double())
    assert reference.rounded(inputs, "half") is None


def test_inputs_and_buffers_are_left_as_they_were() -> None:
    reference = _reference(
        make("x.mul_(2)\n        return self.bn(x)", "torch.rand(8, 4)",
             constructor="self.bn = torch.nn.BatchNorm1d(4)")
    )  # fmt: skip
    inputs = reference.draw(1)
    copy = inputs[0].clone()
    first, second = reference.eager(inputs), reference.eager(inputs)
    reference.exact(inputs)
    traits = reference.traits(inputs)
    assert torch.equal(inputs[0], copy)
    assert torch.equal(first.tensors[0], second.tensors[0])
    assert int(reference.model.bn.num_batches_tracked) == 0
    assert traits.mutates_inputs and not traits.stochastic
    assert set(traits.changed_buffers) == {
        "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"
    }  # fmt: skip
    updated = reference.updated_buffers(inputs, traits.changed_buffers)
    assert int(updated["bn.num_batches_tracked"]) == 1


def test_rounded_arithmetic_is_the_arithmetic_of_the_class() -> None:
    reference = _reference(make("return x @ y", "torch.randn(20, 300), torch.randn(300, 9)"))
    inputs = reference.draw(1)
    x, y = inputs
    tf32 = reference.rounded(inputs, "tf32")
    half = reference.rounded(inputs, "half")
    assert tf32 is not None and half is not None
    by_hand = x.bfloat16().double() @ y.bfloat16().double()
    assert torch.allclose(half.tensors[0], by_hand.bfloat16().double(), rtol=2**-7)
    exact = reference.exact(inputs).tensors[0]
    error = (tf32.tensors[0] - exact).square().mean().sqrt() / exact.square().mean().sqrt()
    assert 1e-4 < float(error) < 1e-3
    sine = _reference(make("return torch.sin(x)", "torch.randn(64)"))
    drawn = sine.draw(1)
    same = sine.rounded(drawn, "tf32")
    assert same is not None and torch.equal(same.tensors[0], sine.exact(drawn).tensors[0])


@pytest.mark.parametrize(
    ("body", "inputs", "length"),
    [
        ("return x + 1", "torch.rand(30, 40)", 1),
        ("return x.sum(-1)", "torch.rand(30, 40)", 40),
        ("return x.mean()", "torch.rand(30, 40)", 1200),
        ("return torch.softmax(x, 0)", "torch.rand(30, 40)", 30),
        ("return torch.cumsum(x, 1)", "torch.rand(30, 40)", 40),
        ("return x @ y", "torch.rand(30, 40), torch.rand(40, 5)", 40),
        ("return F.linear(x, y)", "torch.rand(30, 40), torch.rand(5, 40)", 40),
        ("return F.conv2d(x, y)", "torch.rand(2, 8, 9, 9), torch.rand(4, 8, 3, 3)", 72),
        ("return F.layer_norm(x, [40])", "torch.rand(30, 40)", 40),
        ("return F.group_norm(x, 2)", "torch.rand(3, 8, 5)", 20),
        ("return F.max_pool1d(x, 4)", "torch.rand(3, 8, 20)", 4),
    ],
)
def test_the_longest_sum_is_found(body: str, inputs: str, length: int) -> None:
    reference = _reference(make(body, inputs))
    assert reference.traits(reference.draw(0)).reduction_length == length


def test_randomness_is_noticed_and_evaluation_mode_cures_dropout() -> None:
    reference = _reference(
        make("return self.d(x)", "torch.rand(50, 50)", constructor="self.d = torch.nn.Dropout()")
    )
    inputs = reference.draw(1)
    assert reference.traits(inputs).stochastic
    reference.use_evaluation_mode()
    assert not reference.traits(inputs).stochastic
    nan = _reference(make("return torch.log(x)", "torch.randn(50, 50)"))
    assert not nan.traits(nan.draw(1)).stochastic


def test_weights_come_from_the_construction_seed_alone() -> None:
    problem = make("return self.l(x)", "torch.rand(2, 3)", init="[torch.rand(5)]",
                   constructor="self.l = torch.nn.Linear(3, 2)")  # fmt: skip
    a, b = _reference(problem), _reference(problem)
    assert torch.equal(a.initial_state["l.weight"], b.initial_state["l.weight"])
    with seeded(3, "cpu"):
        assert torch.equal(torch.nn.Linear(3, 2).weight, a.initial_state["l.weight"])


def test_weights_can_be_replaced_and_the_float64_twin_follows() -> None:
    reference = _reference(
        make("return self.l(x)", "torch.rand(2, 3)", constructor="self.l = torch.nn.Linear(3, 2)")
    )
    inputs = reference.draw(1)
    before = reference.exact(inputs).tensors[0]
    reference.load_state({n: v * 2 for n, v in reference.initial_state.items()})
    assert torch.allclose(reference.exact(inputs).tensors[0], 2 * before)
    reference.load_state(reference.initial_state)
    assert torch.equal(reference.exact(inputs).tensors[0], before)


def test_the_callers_generators_are_untouched() -> None:
    reference = _reference(make("return x", "torch.rand(4)"))
    torch.manual_seed(11)
    first = torch.rand(1)
    torch.manual_seed(11)
    reference.draw(1)
    reference.traits(reference.draw(2))
    assert torch.equal(torch.rand(1), first)


def test_outputs_that_cannot_be_compared_are_the_users_to_fix() -> None:
    reference = _reference(make("return object()", "torch.rand(4)"))
    with pytest.raises(UserError, match="forward returned a object"):
        reference.eager(reference.draw(1))
