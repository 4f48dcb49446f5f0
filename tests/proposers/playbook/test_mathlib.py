"""The vector mathematics against double precision, and at the edges of float32."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.nn.functional as F

from kernelpro import inline
from kernelpro.proposers.playbook.cpu import mathlib, prelude
from kernelpro.proposers.playbook.cpu.unit import FLAGS

REFERENCE = {
    "exp": torch.exp, "log": torch.log, "expm1": torch.expm1, "log1p": torch.log1p,
    "sqrt": torch.sqrt, "tanh": torch.tanh, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
    "rsqrt": torch.rsqrt, "sigmoid": torch.sigmoid, "silu": F.silu, "softplus": F.softplus,
    "mish": F.mish, "gelu": F.gelu, "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
    "exp2": torch.exp2, "log2": torch.log2, "log10": torch.log10, "sinh": torch.sinh,
    "cosh": torch.cosh,
}  # fmt: skip
RANGES = {
    "exp": (-87.0, 88.7), "expm1": (-20, 88), "tanh": (-10, 10), "erf": (-5, 5),
    "sin": (-8000, 8000), "cos": (-8000, 8000), "sigmoid": (-80, 80), "silu": (-80, 80),
    "gelu": (-9, 9), "gelu_tanh": (-9, 9), "softplus": (-80, 30), "mish": (-80, 30),
    "log": (1e-30, 1e6), "sqrt": (0, 1e9), "rsqrt": (1e-30, 1e9), "log1p": (-0.99, 1e5),
    "exp2": (-125, 127), "log2": (1e-30, 1e6), "log10": (1e-30, 1e6), "sinh": (-80, 80),
    "cosh": (-80, 80),
}  # fmt: skip
ULP = {
    "exp": 1.1, "log": 1.1, "expm1": 2, "log1p": 1.5, "sqrt": 0.51, "tanh": 1.5, "erf": 2.6,
    "sin": 1.6, "cos": 1.6, "rsqrt": 1.6, "sigmoid": 2.6, "silu": 2.6, "softplus": 2.1, "mish": 4.2,
    "exp2": 1.6, "log2": 2.1, "log10": 2.1, "sinh": 3, "cosh": 3,
}  # fmt: skip
COUNT = 1 << 16


@functools.cache
def _module(lanes: int, fast: frozenset[str]) -> inline.Module:
    functions, _ = mathlib.required(set(REFERENCE), fast=fast)
    loops = [
        f'extern "C" void f_{name}(const float* x, float* y, int64_t n) {{\n'
        f"  for (int64_t j = 0; j < n; j += W)\n"
        f"    store(Full{{}}, y + j, k_{name}(load(Full{{}}, x + j, W)), W);\n}}\n"
        for name in REFERENCE
    ]
    source = prelude.PRELUDE.format(lanes=lanes) + prelude.REDUCE
    return inline.cpp(source + "\n".join([*functions, *loops]), flags=FLAGS)


def _values(name: str, lanes: int, x: torch.Tensor, fast: frozenset[str]) -> torch.Tensor:
    y = torch.empty_like(x)
    getattr(_module(lanes, fast), f"f_{name}")(x, y, x.numel())
    return y


def _inputs(name: str) -> torch.Tensor:
    low, high = RANGES[name]
    x = torch.empty(COUNT).uniform_(low, high, generator=torch.Generator().manual_seed(1))
    x[: COUNT // 4] = x[: COUNT // 4] * 1e-2
    x[COUNT // 4 : COUNT // 2] = x[COUNT // 4 : COUNT // 2] * (2.0 / high)
    return x


@pytest.mark.parametrize("lanes", [16, 8])
@pytest.mark.parametrize("name", ULP)
def test_error_in_units_of_the_last_place(name: str, lanes: int) -> None:
    x = _inputs(name)
    exact = REFERENCE[name](x.double())
    unit = torch.nextafter(exact.abs().float(), torch.tensor(float("inf"))) - exact.abs().float()
    normal = exact.abs() > 1.2e-38
    error = (_values(name, lanes, x, frozenset()).double() - exact).abs() / unit
    assert error[normal].max() <= ULP[name]


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_gelu_is_as_accurate_as_torch(name: str) -> None:
    x = _inputs(name)
    exact = REFERENCE[name](x.double())
    own = (REFERENCE[name](x).double() - exact).abs().max()
    assert (_values(name, 16, x, frozenset()).double() - exact).abs().max() <= 1.3 * own


@pytest.mark.parametrize("name", ["exp", "rsqrt", "sigmoid", "tanh"])
def test_fast_variants_stay_within_their_promise(name: str) -> None:
    x = _inputs(name)
    exact = REFERENCE[name](x.double())
    error = (_values(name, 16, x, frozenset(mathlib.FAST)).double() - exact).abs() / exact.abs()
    assert error[exact.abs() > 1e-37].max() <= 5 * 2.0**-23


@pytest.mark.parametrize("lanes", [16, 8])
@pytest.mark.parametrize("name", sorted({*ULP} - {"mish", "softplus"}))
def test_special_values(name: str, lanes: int) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1e-45, -1e-45, 1e-39, 3.4e38, -3.4e38, 89.5,
                      -104.2, -90.0, -1.0, 1.0, 2.0])  # fmt: skip
    got = _values(name, lanes, x, frozenset())
    want = REFERENCE[name](x.double()).float()
    assert torch.equal(got.isnan(), want.isnan())
    # exp(90) overflows inside the sigmoid, in torch as well: its far tail is zero.
    atol = 1e-37 if name in ("sigmoid", "silu") else 2e-45
    torch.testing.assert_close(got, want, rtol=1e-6, atol=atol, equal_nan=True)
    if name in ("tanh", "erf", "expm1", "log1p", "sqrt"):
        assert torch.signbit(got[4]), "the sign of zero is lost"
