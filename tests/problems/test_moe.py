"""The mixture-of-experts tasks: their routing, their borders, and that small stands for large."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from kernelpro.problems import load_problem
from kernelpro.problems.instantiate import ProblemModule

FOLDER = Path(__file__).parents[2] / "problems" / "moe"
NAMES = ("dw1", "dw2", "forward_gate_up", "forward_uniform")


def small(name: str) -> ProblemModule:
    return ProblemModule(load_problem(FOLDER / "small" / f"{name}.py"))


def expected(name: str, left: torch.Tensor, right: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """In float64, by a mask over all rows: unlike the reference, no slices."""
    rows = torch.arange(left.shape[0])
    owner = (rows[:, None] >= torch.tensor(ends)[None, :]).sum(1)
    chosen = torch.nn.functional.one_hot(owner, len(ends)).double()
    if name.startswith("dw"):
        return torch.einsum("re,rm,rn->emn", chosen, left.double(), right.double())
    return torch.einsum("re,rk,ekn->rn", chosen, left.double(), right.double())


@pytest.mark.parametrize("name", NAMES)
def test_against_float64(name: str) -> None:
    module = small(name)
    torch.manual_seed(3)
    left, right, ends = module.make_inputs()
    got = module.make_model()(left, right, ends)
    exact = expected(name, left, right, ends.tolist())
    assert got.dtype == torch.float16 and got.shape == exact.shape
    assert (got.double() - exact).abs().max() <= 2e-3 * exact.abs().max()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counts", [[0, 0, 616, 0, 0, 0, 0, 0], [0, 1, 0, 615, 0, 0, 0, 0],
                                    [1] * 7 + [609]])  # fmt: skip
def test_empty_experts_and_extreme_shares(name: str, counts: list[int]) -> None:
    module = small(name)
    torch.manual_seed(4)
    left, right, _ = module.make_inputs()
    left, right = left[:616], right[:616] if name.startswith("dw") else right
    ends = torch.tensor(counts).cumsum(0).to(torch.int32)
    got = module.make_model()(left, right, ends)
    exact = expected(name, left, right, ends.tolist())
    assert (got.double() - exact).abs().max() <= 2e-3 * exact.abs().max()
    if name.startswith("dw"):
        assert all((got[e] == 0).all() for e, count in enumerate(counts) if count == 0)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "forward_uniform"])
def test_routing_is_uneven_with_empty_experts(name: str) -> None:
    """At full size: the largest expert has a share as PAPER.md states, and some have no rows."""
    module = ProblemModule(load_problem(FOLDER / f"{name}.py")).module
    torch.manual_seed(5)
    tops, empty = [], []
    for _ in range(20):
        ends = module.routed(module.ROWS)
        counts = torch.diff(ends, prepend=torch.zeros(1, dtype=torch.int32))
        assert ends.dtype == torch.int32 and ends.numel() == 128 and int(ends[-1]) == module.ROWS
        assert (counts >= 0).all()
        tops.append(counts.max().item() / module.ROWS)
        empty.append(int((counts == 0).sum()))
    assert 0.07 <= sorted(tops)[10] <= 0.12
    assert 5 <= sorted(empty)[10] <= 40


@pytest.mark.parametrize("name", NAMES)
def test_small_differs_in_sizes_only(name: str) -> None:
    def code(path: Path) -> str:
        text = path.read_text().split('"""', 2)[2]
        return re.sub(r"^(EXPERTS|ROWS|INPUTS|OUTPUTS) = \d+$", r"\1", text, flags=re.M)

    assert code(FOLDER / f"{name}.py") == code(FOLDER / "small" / f"{name}.py")


def test_sizes_are_those_of_the_paper() -> None:
    sizes = {}
    for name in NAMES:
        module = ProblemModule(load_problem(FOLDER / f"{name}.py")).module
        sizes[name] = (module.EXPERTS, module.ROWS, module.INPUTS, module.OUTPUTS)
        assert module.PRECISION == "half" and torch.float16 == module.DTYPE
    assert sizes == {
        "dw1": (128, 57768, 2880, 5760), "dw2": (128, 57768, 2880, 2880),
        "forward_gate_up": (128, 65536, 2880, 5760),
        "forward_uniform": (128, 524288, 2880, 2880),
    }  # fmt: skip
