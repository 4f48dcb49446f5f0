"""Bounds on kernels whose arithmetic is known."""

from __future__ import annotations

import pytest
import torch
from problems_for_tests import make

from kernelpro.evaluation.arithmetic import MANTISSA_BITS, round_mantissa
from kernelpro.evaluation.compare import compare
from kernelpro.evaluation.expectation import Drawer, Expectation, judge_tensors
from kernelpro.evaluation.reference import Reference
from kernelpro.evaluation.tolerance import SAFETY, bounds
from kernelpro.schema.problem import Problem


def _expect(problem: Problem, family: str = "default", seed: int = 5) -> Expectation:
    reference = Reference(problem, "cpu", construction_seed=1)
    traits = reference.traits(reference.draw(0))
    expected = Drawer(reference, traits).expect(family, seed)
    assert isinstance(expected, Expectation), expected
    return expected


def _class(answer: torch.Tensor, expected: Expectation) -> str:
    return judge_tensors((answer,), expected).precision


def _serial_sum(x: torch.Tensor) -> torch.Tensor:
    """float32 sum along the last dimension, one term after the other: the worst honest order."""
    total = torch.zeros(x.shape[:-1])
    for column in x.unbind(-1):
        total = total + column
    return total


@pytest.mark.parametrize("family", ["default", "wide", "offset"])
@pytest.mark.parametrize("columns", [64, 20000])
def test_a_serial_float32_sum_is_strict(family: str, columns: int) -> None:
    expected = _expect(make("return x.sum(-1)", f"torch.rand(64, {columns})"), family)
    assert _class(_serial_sum(expected.draw.inputs[0]), expected) == "strict"


def test_a_sum_that_drops_its_tail_is_wrong() -> None:
    expected = _expect(make("return x.sum(-1)", "torch.rand(64, 4096)"), "spiky")
    assert _class(expected.draw.inputs[0][:, :4000].sum(-1), expected) == "none"


GEMM = make("return x @ y", "torch.rand(96, 8192), torch.rand(8192, 64)")


def _gemm(x: torch.Tensor, y: torch.Tensor, kind: str) -> torch.Tensor:
    if kind == "bf16":
        return (x.bfloat16().double() @ y.bfloat16().double()).float()
    if kind == "tf32":
        cut = torch.tensor(-8192, dtype=torch.int32)
        a, b = ((t.view(torch.int32) & cut).view(torch.float32) for t in (x, y))
        return a @ b
    return x @ y


def test_a_bf16_gemm_is_half_although_allclose_accepts_it() -> None:
    """EVAL_PITFALLS 29: positive inputs hide the rounding, normal ones show it."""
    default, wide = _expect(GEMM), _expect(GEMM, "wide")
    answer = _gemm(*default.draw.inputs, kind="bf16")
    assert torch.allclose(answer, default.eager.tensors[0], rtol=1e-2, atol=1e-2)
    assert _class(_gemm(*wide.draw.inputs, kind="bf16"), wide) == "half"


def test_a_tf32_gemm_is_tf32_and_a_float32_one_strict() -> None:
    wide = _expect(GEMM, "wide")
    assert _class(_gemm(*wide.draw.inputs, kind="tf32"), wide) == "tf32"
    assert _class(_gemm(*wide.draw.inputs, kind="fp32"), wide) == "strict"


def test_a_serial_float32_gemm_of_long_k_is_strict() -> None:
    for family in ("default", "wide"):
        expected = _expect(GEMM, family)
        x, y = expected.draw.inputs
        total = torch.zeros(96, 64)
        for k in range(x.shape[1]):
            total += x[:, k, None] * y[None, k]
        assert _class(total, expected) == "strict"


def test_zeros_fail_a_softmax_over_393216_columns() -> None:
    """EVAL_PITFALLS 17: every entry is about 2.5e-6, below any usual absolute tolerance."""
    expected = _expect(make("return torch.softmax(x, -1)", "torch.rand(2, 393216)"))
    zeros = torch.zeros(2, 393216)
    assert torch.allclose(zeros, expected.eager.tensors[0], atol=1e-4)
    assert _class(zeros, expected) == "none"
    x = expected.draw.inputs[0]
    e = torch.exp(x - x.max(-1, keepdim=True).values)
    assert _class(e / e.sum(-1, keepdim=True), expected) == "strict"


def test_the_bound_scales_with_the_output() -> None:
    for factor in (1e-6, 1.0, 1e6):
        expected = _expect(make(f"return torch.tanh(x) * {factor}", "torch.randn(64, 64)"))
        truth = expected.eager.tensors[0]
        assert _class(truth * (1 + 1e-6), expected) == "strict"
        assert _class(truth * 1.05, expected) == "none"


def test_half_arithmetic_inside_a_float32_elementwise_kernel_is_half() -> None:
    expected = _expect(make("return F.gelu(x)", "torch.randn(256, 256)"))
    x = expected.draw.inputs[0]
    assert _class(torch.nn.functional.gelu(x.bfloat16()).float(), expected) == "half"
    assert _class(torch.nn.functional.gelu(x), expected) == "strict"


def test_uneven_rows_have_bounds_of_their_own() -> None:
    scales = torch.tensor([0.1, 1.0, 10.0])[:, None]
    exact = (torch.randn(3, 500) * scales).double()
    bound = bounds(exact, exact.float(), {}, reduction_length=1)["strict"]
    assert bound.group_dim == 0
    assert bound.atol.flatten().tolist() == pytest.approx(
        (SAFETY * 1.3e-6 * exact.square().mean(1).sqrt()).tolist(), rel=0.01
    )


def test_bfloat16_problems_are_judged_by_their_own_rounding() -> None:
    problem = make("return x * torch.sigmoid(x)", "torch.randn(64, 256, dtype=torch.bfloat16)")
    expected = _expect(problem)
    x = expected.draw.inputs[0]
    fused = (x.float() * torch.sigmoid(x.float())).bfloat16()
    assert _class(fused, expected) == "strict"
    assert _class((fused.float() * 1.1).bfloat16(), expected) == "none"


def test_an_argmax_must_be_exact_but_for_real_near_ties() -> None:
    expected = _expect(make("return x.argmax(-1)", "torch.rand(500, 300)"))
    right = expected.draw.inputs[0].argmax(-1)
    assert _class(right, expected) == "strict"
    wrong = right.clone()
    wrong[7] = (wrong[7] + 1) % 300
    assert _class(wrong, expected) == "none"


def test_errors_that_sit_in_few_elements_do_not_fail_an_honest_kernel() -> None:
    """Extreme inputs saturate a clamp: the few elements in between carry all of the error."""
    problem = make(
        "y = torch.clamp(x @ self.w, -2, 2)\n        return F.mish(y)", "torch.randn(512, 128)",
        constructor="self.w = torch.nn.Parameter(torch.randn(128, 128))",
    )  # fmt: skip
    expected = _expect(problem, "extreme")
    x, w = expected.draw.inputs[0], expected.reference.model.w.detach()
    reordered = torch.zeros(512, 128)
    for k in range(128):
        reordered += x[:, k, None] * w[None, k]
    answer = torch.nn.functional.mish(torch.clamp(reordered, -2, 2))
    assert _class(answer, expected) == "strict"
    coarse = torch.clamp((x.bfloat16().float() @ w.bfloat16().float()), -2, 2)
    assert _class(torch.nn.functional.mish(coarse), expected) != "strict"


def test_slices_that_are_mostly_zero_do_not_fail_an_honest_kernel() -> None:
    """Behind a ReLU some columns hold a handful of values, whose error says little."""
    for seed in range(10):
        torch.manual_seed(seed)
        x, w, b = torch.randn(128, 256), torch.randn(256, 256) / 16, -1.5 - 1.5 * torch.rand(256)
        exact = torch.relu(x.double() @ w.double() + b.double())
        eager = torch.relu(x @ w + b)
        serial = torch.zeros(128, 256)
        for k in range(256):
            serial += x[:, k, None] * w[k]
        bound = bounds(exact, eager, {}, reduction_length=256)["strict"]
        assert compare(torch.relu(serial + b), exact, eager, bound).passed
        for bits in (MANTISSA_BITS["tf32"], MANTISSA_BITS["half"]):
            product = round_mantissa(x.double(), bits) @ round_mantissa(w.double(), bits)
            coarse = torch.relu(product + b.double()).float()
            assert not compare(coarse, exact, eager, bound).passed
