"""Running sums and products, forwards and backwards, along rows and columns."""

from __future__ import annotations

import pytest
from tests.proposers.playbook.candidates import build, compare, problem

from kernelpro.proposers.playbook.plan.ir import AtenCall, ScanKernel


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        (
            "return (torch.cumsum(x, 1), torch.cumsum(x, 0), torch.cumprod(x, -1),\n"
            "    torch.cumsum(x * (x > 0), 1) * 2, torch.cumsum(x.t(), 1))",
            "x = torch.randn(7, 133)",
        ),
        (
            "return (torch.cumsum(x, 1), torch.cumsum(x.half(), 2), torch.cumsum(x > 0, 1),\n"
            "    x.flip(2) * 2 + x, torch.cumsum(x.flip(0, 1), 2))",
            "x = torch.randn(3, 40, 70)",
        ),
    ],
    ids=["matrix", "cube"],
)
def test_scans_are_right(forward: str, inputs: str) -> None:
    plans = compare(problem(forward, inputs))
    assert not [s for s in plans[0].steps if isinstance(s, AtenCall)]


def test_a_reversed_scan_moves_nothing_twice() -> None:
    forward = "return torch.cumsum(x.flip(1), dim=1).flip(1)"
    (step,) = compare(problem(forward, "x = torch.randn(5, 130)"))[0].steps
    assert isinstance(step, ScanKernel)
    assert step.source.strides[:2] == (130, -1)
    assert (step.target.strides[:2], step.target.offset) == ((130, -1), 129)


@pytest.mark.parametrize(
    "forward",
    ["return torch.cumsum(x.int(), 1, dtype=torch.int32)", "return torch.cumsum(x[:, :1], 1)",
     "return torch.cummax(x, 1).values"],
)  # fmt: skip
def test_what_no_scan_can_do_stays_with_torch(forward: str) -> None:
    _, plans = build(problem(forward, "x = torch.randn(5, 30)"))
    assert not [s for s in plans[0].steps if isinstance(s, ScanKernel)]
