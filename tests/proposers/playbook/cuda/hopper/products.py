"""Problems with products of halves that reach every path of the Hopper family's emission."""

from __future__ import annotations

from pathlib import Path

from tests.proposers.playbook.cuda.cases import Case

from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import Body, candidate_source
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.schema.hardware import HOPPER

_HALF = "torch.randn(264, 200, dtype=torch.float16), torch.randn(200, 392, dtype=torch.float16)"
_BF16 = _HALF.replace("float16", "bfloat16")
CASES = (
    Case("plain", "x @ y", _HALF),
    Case("linear_gelu", "F.gelu(F.linear(x, y.t(), z))",
         _BF16 + ", torch.randn(392, dtype=torch.bfloat16)"),
    Case("transposed", "torch.relu(x.t() @ y)",
         "torch.randn(200, 264, dtype=torch.float16), torch.randn(200, 392, dtype=torch.float16)"),
    Case("residual", "x @ y * 0.5 + z", _HALF + ", torch.randn(264, 392, dtype=torch.float16)"),
    Case("batched", "torch.tanh(torch.bmm(x, y))",
         "torch.randn(3, 136, 72, dtype=torch.bfloat16), "
         "torch.randn(3, 72, 200, dtype=torch.bfloat16)"),
    Case("wide_result", "(x @ y).float() + z", _HALF + ", torch.randn(264, 392)"),
    Case("two_results", "(torch.relu(x @ y), torch.sigmoid(x @ y))", _BF16),
    Case("odd_columns", "x @ y.t() + z", "torch.randn(72, 136, dtype=torch.float16), "
         "torch.randn(77, 136, dtype=torch.float16), torch.randn(77, dtype=torch.float16)"),
    Case("rounded", "F.relu(x @ y.t())", "torch.randn(264, 200), torch.randn(392, 200)",
         precision="half"),
)  # fmt: skip


def candidate(case: Case, folder: Path, knobs: CudaKnobs) -> tuple[str, Body]:
    """(candidate file, its first body) of a case on a Hopper GPU with 132 multiprocessors."""
    path = folder / "problem.py"
    path.write_text(case.source(), encoding="utf-8")
    problem = load_problem(path)
    plans = [make_plan(graph) for graph in export_graphs(problem)]
    bodies = [
        cuda_body(plan, knobs, number=i, units=132, precision=problem.precision, capability=HOPPER)
        for i, plan in enumerate(plans)
    ]
    return candidate_source(problem, plans, bodies, case.name), bodies[0]
