"""Mantissa rounding against torch's own formats."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.evaluation.arithmetic import Watch, round_mantissa


def test_seven_bits_are_bfloat16_and_ten_are_float16() -> None:
    x = torch.randn(10000, dtype=torch.float64)
    from_float = x.float().double()
    assert torch.equal(round_mantissa(from_float, 7), from_float.bfloat16().double())
    normal = from_float[from_float.abs() > 1e-4]
    assert torch.equal(round_mantissa(normal, 10), normal.half().double())


@given(st.floats(allow_nan=False, width=32), st.sampled_from([7, 10, 23]))
def test_rounding_is_to_nearest_and_idempotent(value: float, bits: int) -> None:
    x = torch.tensor([value], dtype=torch.float64)
    once = round_mantissa(x, bits)
    assert torch.equal(round_mantissa(once, bits), once)
    if math.isinf(value):
        assert torch.equal(once, x)
    else:
        assert abs(float(once) - value) <= 2.0 ** -(bits + 1) * abs(value)


def test_nan_stays() -> None:
    assert bool(torch.isnan(round_mantissa(torch.tensor([math.nan], dtype=torch.float64), 7)))


def test_in_place_arguments_and_views_are_left_alone() -> None:
    x = torch.full((4,), 1.0 + 2.0**-20, dtype=torch.float64)
    with Watch("half"):
        view = x.view(2, 2)
        view.add_(0.0)
        total = x + 0.0
    assert torch.equal(x, torch.full((4,), 1.0 + 2.0**-20, dtype=torch.float64))
    assert torch.equal(total, torch.ones(4, dtype=torch.float64))


def test_operators_are_counted_by_name() -> None:
    with Watch() as watch:
        torch.relu(torch.rand(3)).sum()
    assert {"relu", "sum"} <= set(watch.operators)
