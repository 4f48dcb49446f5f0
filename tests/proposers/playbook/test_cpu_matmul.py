"""Matrix products with what follows: library and own, odd sizes, batches, transposed operands."""

from __future__ import annotations

import pytest
from tests.proposers.playbook.candidates import build, compare, problem

from kernelpro.proposers.playbook.cpu.knobs import CpuKnobs
from kernelpro.proposers.playbook.plan.coverage import plan_coverage
from kernelpro.proposers.playbook.plan.ir import AtenCall, Kernel, MatmulKernel

LINEAR = "self.l = nn.Linear(70, 45)"
CASES = {
    "linear_gelu": ("return F.gelu(self.l(x))", "x = torch.randn(131, 70)", LINEAR),
    "linear_3d": ("return torch.relu(self.l(x)) * 2", "x = torch.randn(3, 50, 70)", LINEAR),
    "row_softmax": ("return torch.softmax(self.l(x), -1)", "x = torch.randn(131, 70)", LINEAR),
    "norm": ("return F.layer_norm(self.l(x), (45,)) + self.l(x).mean()", "x = torch.randn(99, 70)",
             LINEAR),
    "heads": ("y = self.l(x).view(2, 50, 5, 9).transpose(1, 2)\nreturn y * 2, y.sum(-1)",
              "x = torch.randn(2, 50, 70)", LINEAR),
    "two_products": ("return F.silu(x @ y) * (x @ z)",
                     "x = torch.randn(64, 40); y = torch.randn(40, 33); z = torch.randn(40, 33)",
                     "pass"),
    "bmm": ("return torch.softmax(x @ y.transpose(1, 2) * 0.1, -1) @ y",
            "x = torch.randn(4, 66, 24); y = torch.randn(4, 37, 24)", "pass"),
    "deep": ("return torch.tanh(x.t() @ y + 1)",
             "x = torch.randn(600, 97); y = torch.randn(600, 50)", "pass"),
    "plain": ("return x @ y", "x = torch.randn(64, 40); y = torch.randn(40, 33)", "pass"),
    "skinny": ("return F.relu(x @ y)", "x = torch.randn(3, 40); y = torch.randn(40, 33)", "pass"),
    "product_kept": ("y = self.l(x)\nreturn y, F.relu(y)", "x = torch.randn(64, 70)", LINEAR),
    "grouped_heads": ("k = y.repeat_interleave(3, dim=1)\nreturn torch.tanh(x @ k.transpose(2, 3))",
                      "x = torch.randn(2, 6, 20, 16); y = torch.randn(2, 2, 24, 16)", "pass"),
    "column_epilogue": ("return self.l(x).amax(0)", "x = torch.randn(64, 70)", LINEAR),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_own_product(name: str) -> None:
    body, inputs, init = CASES[name]
    compare(problem(body, inputs, init), CpuKnobs(matmul="own", row_block=24, depth_block=128))


@pytest.mark.parametrize(
    "name", ["linear_gelu", "row_softmax", "two_products", "bmm", "grouped_heads"]
)
def test_library_product(name: str) -> None:
    body, inputs, init = CASES[name]
    compare(problem(body, inputs, init), CpuKnobs(matmul="library"))


@pytest.mark.parametrize("lanes", [8, 4])
def test_own_product_with_narrow_vectors(lanes: int) -> None:
    knobs = CpuKnobs(matmul="own", lanes=lanes, tile_rows=6)
    compare(problem(*CASES["linear_gelu"]), knobs)


def test_epilogue_is_fused_and_coverage_is_honest() -> None:
    _, plans = build(problem(*CASES["linear_gelu"]))
    products = [s for s in plans[0].steps if isinstance(s, MatmulKernel)]
    assert [p.epilogue is not None for p in products] == [True]
    assert not any(isinstance(s, Kernel) for s in plans[0].steps)
    assert plans[0].coverage.native_share < 0.1, "the library multiplies"
    assert plan_coverage(plans[0], own_products=True).native_share == 1.0


def test_library_product_is_written_over_by_its_epilogue() -> None:
    source, _ = build(problem(*CASES["linear_gelu"]))
    assert "nothing reads it again" in source


def test_skinny_products_stay_with_the_library() -> None:
    source, plans = build(problem(*CASES["skinny"]), CpuKnobs(matmul="own"))
    assert "torch.ops.aten.mm" in source
    assert not any(isinstance(s, AtenCall) for s in plans[0].steps)
