"""Generated element-wise kernels against torch: every operator, broadcasting, dtypes, views."""

from __future__ import annotations

import dataclasses
from textwrap import dedent
from typing import Any

import pytest
from tests.proposers.playbook.candidates import compare, problem

from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.ir import AtenCall, Kernel

ALL_IN_ONE = {
    "activations": """
        a = F.gelu(x) + F.gelu(y, approximate='tanh') + F.silu(x) * F.mish(y)
        b = F.softplus(x) - F.elu(y) + F.leaky_relu(x, 0.2) * F.hardtanh(y, -0.5, 0.7)
        c = F.hardswish(x) + F.relu6(y * 4) + F.hardsigmoid(x) + F.softplus(y, 2.0, 5.0)
        return (a, b, c, torch.sigmoid(x * 3), torch.tanh(y * 2), F.relu(x), F.selu(x),
                F.logsigmoid(y))""",
    "arithmetic": """
        p = x.abs() + 0.1
        return (x + y, x - 2 * y, x * y, x / p, p.rsqrt(), p.sqrt(), p.reciprocal(), -x,
                x.sign(), p ** 2.5, x ** 2, x ** 3, p ** -0.5, 2 ** y, 1 / p, 3 - x,
                torch.add(x, y, alpha=0.3))""",
    "transcendental": """
        p = x.abs() + 0.01
        q = torch.tanh(x) * 0.99
        return (x.exp(), p.log(), p.log2(), p.log10(), p.log1p(), x.expm1(), x.sin(), y.cos(),
                x.exp2(), torch.erf(y), torch.erfc(y), x.atan(), q.asin(), q.acos(), x.sinh(),
                x.cosh(), torch.atan2(x, y), torch.fmod(x, p), torch.remainder(x, p), x.asinh(),
                q.atanh())""",
    "selection": """
        m = x > y
        return (torch.where(m, x, y), torch.where(x.isnan() | ~m, 0.0, x), x.clamp(-0.5, 0.5),
                torch.minimum(x, y), torch.maximum(x, y), x.masked_fill(m, float('-inf')),
                m & (x < 1), x.clamp(min=0.1), m.float() * x, x.eq(y), x.ne(0), x.ge(y),
                (x > 0) ^ m, x.isinf(), x.floor(), x.ceil(), x.round(), x.trunc(),
                x.clamp(y - 1, y + 1), torch.lerp(x, y, 0.3),
                torch.addcmul(x, y, y, value=0.5), torch.addcdiv(x, y, y.abs() + 1))""",
}


@pytest.mark.parametrize("name", ALL_IN_ONE)
@pytest.mark.parametrize("lanes", [16, 1])
def test_operators(name: str, lanes: int) -> None:
    inputs = "x = torch.randn(37, 129); y = torch.randn(37, 129) * 2"
    given = problem(dedent(ALL_IN_ONE[name]), inputs)
    plans = compare(given, CpuKnobs(lanes=lanes))
    assert not plans[0].coverage.library
    assert sum(isinstance(s, Kernel) for s in plans[0].steps) <= 2


def _plant(inputs: list[Any]) -> None:
    special = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38,
               88.9, -88.9, -104.5, 1e-10, -20.0, 20.0, 100.0]  # fmt: skip
    for tensor in inputs:
        flat = tensor.view(-1)
        for i, value in enumerate(special):
            flat[i * 7] = value


@pytest.mark.parametrize("lanes", [16, 8])
@pytest.mark.parametrize("name", ["activations", "selection"])
def test_special_values(name: str, lanes: int) -> None:
    given = problem(dedent(ALL_IN_ONE[name]), "x = torch.randn(8, 65) * 9; y = torch.randn(8, 65)")
    compare(given, CpuKnobs(lanes=lanes), spoil=_plant)


BROADCASTING = {
    "rows_and_columns": (
        "return torch.relu(x + r) * 2, (x * c).exp(), torch.tanh(c * r), x * s + s, x + t.t() * 2",
        "x = torch.randn(33, 70); r = torch.randn(70); c = torch.randn(33, 1); "
        "s = torch.tensor(0.7); t = torch.randn(70, 33)",
    ),
    "channels": (
        "return F.silu(x * y.view(1, -1, 1, 1) + y[None, :, None, None]), x - z",
        "x = torch.randn(2, 5, 7, 11); y = torch.randn(5); z = torch.randn(2, 1, 7, 11)",
    ),
    "self_transposed": ("return x + x.t()", "x = torch.randn(31, 31)"),
    "small_inner": ("return x * y", "x = torch.randn(5000, 3); y = torch.randn(3)"),
    "tiny": ("return x * 2 + 1, y.sin() * 2", "x = torch.randn(1); y = torch.tensor(0.3)"),
}


@pytest.mark.parametrize("name", BROADCASTING)
def test_broadcasting(name: str) -> None:
    plans = compare(problem(*BROADCASTING[name]))
    assert not plans[0].coverage.library


VIEWS = {
    "index_maps": """
        a, b = x.chunk(2, 1)
        e = x[:, :1].expand(48, 10) * x[:, 2:3].expand(-1, 10)
        return (F.gelu(x.view(6, 8, 10)).permute(2, 0, 1).reshape(10, 48) * 2,
                a * torch.sigmoid(b), x[1:, ::2] * x[:-1, 1::2] + x[0, 0], e)""",
    "inside_kernels": """
        y = x.exp()
        z = (x * 2)[:10]
        return (F.glu(x * 3), y.t() + 1, y.view(-1) * 2, y, z + z.t(), (x * 2).t(), x,
                (x.unsqueeze(1) * x.unsqueeze(2)).flatten(1))""",
    "library_between": """
        return [F.relu(torch.cat([x * 2, x.tanh()], 1)) + 1,
                torch.cumsum(x.sigmoid(), 1).log()]""",
    "dictionary": "return {'a': x + 1, 'b': x.relu()}",
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    compare(problem(dedent(VIEWS[name]), "x = torch.randn(48, 10)"))


DTYPES = {
    "half": (
        "return F.gelu(x) * y, x.half() * 2 + x, (x + y).half()",
        "x = torch.randn(9, 50).bfloat16(); y = torch.randn(50).bfloat16()",
    ),
    "float16": ("return x * 2 + y.half()", "x = torch.randn(9, 50).half(); y = torch.randn(50)"),
    "float64": (
        "return F.gelu(x).sum(1) + F.silu(y)",
        "x = torch.randn(9, 50).double(); y = torch.randn(9).double()",
    ),
    "round_trip": (
        "return x.bfloat16().float() * 3, x.half().float(), x.masked_fill(~y, -1e9)",
        "x = torch.randn(9, 50); y = torch.rand(9, 50) > 0.5",
    ),
    "integers": (
        "return x * 2 + y, (x > y).float(), x / y, x.float() * 0.5 + y, x.int() * 3",
        "x = torch.arange(60).view(6, 10); y = torch.arange(1, 11)",
    ),
}


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str) -> None:
    compare(problem(*DTYPES[name]))


def test_parameters_of_submodules_and_sequential() -> None:
    init = (
        "self.gates = nn.ParameterList([nn.Parameter(torch.randn(40))])\n"
        "self.net = nn.Sequential(nn.PReLU(), nn.BatchNorm1d(40)).eval()"
    )
    compare(problem("return self.net(x * self.gates[0])", "x = torch.randn(30, 40)", init))


def test_inputs_of_other_strides_are_taken() -> None:
    plans = compare(problem("return x * 2 + 1", "x = torch.randn(30, 40).t()"))
    assert plans[0].buffers["x"].stride == (1, 40)


@pytest.mark.parametrize(
    "change",
    [{"unroll": 8, "chunk": 512, "stream_bytes": 0, "serial_below": 0},
     {"threads": 1, "flush_denormals": True, "fast_math": ("exp", "rsqrt"), "lanes": 4},
     {"grouping": "single"}, {"grouping": "vertical", "streaming": False}],
    ids=str,
)  # fmt: skip
def test_knobs_keep_results(change: dict[str, Any]) -> None:
    body = "y = F.gelu(x * 0.5) + x.abs().add(1).rsqrt()\nreturn y, torch.softmax(y, -1)"
    given = problem(body, "x = torch.randn(64, 1040)")
    compare(given, dataclasses.replace(CpuKnobs(), **change))


def test_unknown_operators_stay_with_torch_and_are_reported() -> None:
    plans = compare(problem("return torch.sort(x.exp(), 1)[0] * 2", "x = torch.randn(9, 20)"))
    left = dict(plans[0].coverage.library)
    assert list(left) == ["sort"]
    assert plans[0].coverage.native_share < 1
    assert any(isinstance(s, AtenCall) for s in plans[0].steps)
