"""Pooling, padding and depthwise convolution as sliding windows: right, fused, and refused."""

from __future__ import annotations

import pytest
from tests.proposers.playbook.candidates import build, compare, problem

from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.ir import AtenCall, Kernel, MatmulKernel

IMAGE = "x = torch.randn(2, 6, 13, 17)"
VOLUME = "x = torch.randn(2, 3, 7, 9, 8)"
LINE = "x = torch.randn(3, 5, 40)"


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        (
            "return (F.max_pool2d(x, 2), F.max_pool2d(x, 3, stride=2, padding=1),\n"
            "    F.max_pool2d(x, (2, 3), stride=(1, 2), padding=(1, 0), dilation=(2, 3)),\n"
            "    F.max_pool2d(x, 3, stride=2, ceil_mode=True),\n"
            "    F.max_pool2d(-x.abs() - 1, 3, stride=1, padding=1),\n"
            "    F.max_pool2d(x.transpose(2, 3), 2), F.max_pool2d(x.half(), 3, 2, 1))",
            IMAGE,
        ),
        (
            "return (F.avg_pool2d(x, 3), F.avg_pool2d(x, 3, stride=2, padding=1),\n"
            "    F.avg_pool2d(x, 2, divisor_override=3),\n"
            "    F.adaptive_avg_pool2d(x[:, :, :12, :16], (3, 4)),\n"
            "    F.pad(x, (1, 2, 0, 3), value=0.5) * 2)",
            IMAGE,
        ),
        (
            "return (F.max_pool1d(x, 4, stride=1, padding=2, dilation=3),\n"
            "    F.avg_pool1d(x, 4, stride=1, padding=2), F.pad(x, (-1, 2)))",
            LINE,
        ),
        (
            "return (F.max_pool3d(x, 3, stride=2, padding=1, dilation=2),\n"
            "    F.avg_pool3d(x, 3, stride=2, padding=1))",
            VOLUME,
        ),
        # What surrounds a window shares its kernel where it can.
        (
            "return (torch.relu(F.avg_pool2d(x * 2, 2) - 1).tanh(),\n"
            "    F.max_pool2d(x, 2).sum(dim=1),\n"
            "    F.max_pool2d(F.pad(x, (0, 1, 0, 1)), 2, stride=1) + x)",
            IMAGE,
        ),
    ],
    ids=["max", "average", "line", "volume", "fused"],
)
def test_windows_are_right(forward: str, inputs: str) -> None:
    given = problem(forward, inputs)
    plans = compare(given)
    assert any(isinstance(s, Kernel) for s in plans[0].steps)
    assert not [s for s in plans[0].steps if isinstance(s, AtenCall) and not s.view]


def test_depthwise_convolution() -> None:
    init = (
        "self.a = nn.Conv2d(6, 6, 3, groups=6)\n"
        "self.b = nn.Conv2d(6, 6, (3, 5), padding=(1, 2), stride=(2, 1), groups=6, bias=False)\n"
        "self.c = nn.Conv2d(6, 12, 3, padding=2, dilation=2, groups=6)"
    )
    given = problem("return torch.relu(self.a(x)), self.b(x).tanh(), self.c(x)", IMAGE, init)
    plans = compare(given)
    # The activations are in the convolutions' own kernels.
    assert [type(s) for s in plans[0].steps] == [Kernel] * 3


def test_depthwise_in_one_and_three_dimensions() -> None:
    compare(problem("return self.c(x)", LINE, "self.c = nn.Conv1d(5, 5, 3, padding=1, groups=5)"))
    compare(problem("return self.c(x)", VOLUME, "self.c = nn.Conv3d(3, 3, 2, groups=3)"))


@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return self.conv(x)", "self.conv = nn.Conv2d(6, 4, 3)"),
        ("return self.conv(x)", "self.conv = nn.Conv2d(6, 6, 3, groups=2)"),
        ("return self.conv(x)", "self.conv = nn.ConvTranspose2d(6, 6, 3, groups=6)"),
        ("return F.avg_pool2d(x, 3, padding=1, count_include_pad=False)", "pass"),
        ("return F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)", "pass"),
        ("return F.adaptive_avg_pool2d(x, (5, 5))", "pass"),
    ],
)
def test_what_no_window_can_do_stays_with_torch(forward: str, init: str) -> None:
    given = problem(forward, "x = torch.randn(2, 6, 14, 18)", init)
    _, plans = build(given)
    assert [s for s in plans[0].steps if isinstance(s, AtenCall)]


def test_places_of_maxima_are_left_to_torch_and_the_maxima_are_still_right() -> None:
    compare(problem("a, b = F.max_pool2d(x, 2, return_indices=True)\nreturn a + 1, b", IMAGE))


def test_windows_store_neighbours_by_neighbours() -> None:
    _, plans = build(problem("return F.avg_pool2d(x, 3, stride=1)", IMAGE))
    (kernel,) = plans[0].steps
    assert isinstance(kernel, Kernel)
    assert not kernel.axes[-1].reduced
    assert kernel.stores[0].access.strides[-1] == 1


def test_the_bias_of_a_convolution_joins_what_follows_it() -> None:
    init = "self.a = nn.Conv2d(6, 8, 3)\nself.b = nn.ConvTranspose2d(6, 4, 2)"
    plans = compare(problem("return torch.relu(self.a(x)) * 2, self.b(x).tanh()", IMAGE, init))
    steps = plans[0].steps
    assert [type(s) for s in steps] == [AtenCall, Kernel, AtenCall, Kernel]
    assert [s.node.args[2] for s in steps if isinstance(s, AtenCall)] == [None, None]
    # The library's share of the work is still counted as the library's.
    assert plans[0].coverage.native_share < 0.2


def test_a_bias_with_nothing_after_it_stays_where_it_is() -> None:
    init = "self.a = nn.Conv2d(6, 8, 3)\nself.b = nn.Conv2d(8, 8, 3)"
    _, plans = build(problem("return self.b(self.a(x)) + 1", IMAGE, init))
    first, second, _ = plans[0].steps
    assert isinstance(first, AtenCall) and isinstance(second, AtenCall)
    assert first.node.args[2] is not None
    assert second.node.args[2] is None


@pytest.mark.parametrize("matmul", ["library", "own"])
def test_pointwise_convolution_is_a_product(matmul: str) -> None:
    init = "self.a = nn.Conv2d(6, 8, 1)\nself.b = nn.Conv2d(6, 5, 1, bias=False)"
    given = problem("return torch.relu(self.a(x)) * 2, self.b(x)", IMAGE, init)
    plans = compare(given, CpuKnobs(matmul=matmul))
    assert [type(s) for s in plans[0].steps] == [MatmulKernel, MatmulKernel]
    _, strided = build(problem("return self.c(x)", IMAGE, "self.c = nn.Conv2d(6, 8, 1, stride=2)"))
    assert not [s for s in strided[0].steps if isinstance(s, MatmulKernel)]
