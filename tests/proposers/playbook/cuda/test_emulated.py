"""Generated CUDA, run thread by thread on the CPU, agrees with torch: no GPU needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.proposers.playbook.candidates import problem
from tests.proposers.playbook.cuda.emulator import EmulatedModule

from kernelpro import inline
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.schema.problem import Problem

IMAGE = "x = torch.randn(2, 3, 9, 11)"
CASES = {
    "max_pool_padded": ("return torch.relu(F.max_pool2d(x, 3, stride=2, padding=1))", IMAGE, ""),
    "average_pool": ("return F.avg_pool2d(x * 2, 2, stride=1, padding=1) + 1", IMAGE, ""),
    "pad": ("return F.pad(x, (1, 0, 2, 1), value=2.0)", IMAGE, ""),
    "depthwise": ("return F.silu(self.c(x))", IMAGE,
                  "self.c = nn.Conv2d(3, 6, 3, padding=2, dilation=2, groups=3)"),
    "scan_rows": ("return torch.cumsum(x, 1)", "x = torch.randn(2, 2052)", ""),
    "scan_odd_rows": ("return torch.cumprod(x, 1)", "x = 1 + torch.randn(2, 1031) / 100", ""),
    "scan_columns": ("return torch.cumsum(x, 1)", "x = torch.randn(2, 13, 37)", ""),
    "scan_reversed": ("return torch.cumsum(x.flip(1), 1).flip(1)", "x = torch.randn(2, 1100)", ""),
    "scan_counts": ("return torch.cumsum(x > 0, 1)", "x = torch.randn(2, 70)", ""),
    "scan_half": ("return torch.cumsum(x.half(), 1)", "x = torch.randn(2, 64)", ""),
    "softmax": ("return torch.softmax(x, 1)", "x = torch.randn(3, 70)", ""),
}  # fmt: skip


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "cuda", lambda source, **_: EmulatedModule(source, tmp_path))


def _source(given: Problem, units: int) -> str:
    plans = [make_plan(g) for g in export_graphs(given)]
    bodies = [
        cuda_body(plan, CudaKnobs(), number=i, units=units, precision="strict")
        for i, plan in enumerate(plans)
    ]
    return candidate_source(given, plans, bodies, "emulated").replace("t.is_cuda and", "")


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("units", [1, 132], ids=["one_thread_a_window", "shared_windows"])
def test_emulated(name: str, units: int) -> None:
    """``units``: of a GPU small enough to be filled, and of one that is not."""
    forward, inputs, init = CASES[name]
    if units == 1 and "scan" in name:
        pytest.skip("scans do not depend on the number of multiprocessors")
    given = problem(forward, inputs, init or "pass")
    namespace: dict[str, object] = {"__name__": "candidate"}
    exec(compile(_source(given, units), "candidate.py", "exec"), namespace)
    torch.manual_seed(0)
    arguments = namespace["get_inputs"]()  # type: ignore[operator]
    torch.manual_seed(1)
    reference = namespace["Model"]()  # type: ignore[operator]
    torch.manual_seed(1)
    candidate = namespace["ModelNew"]()  # type: ignore[operator]
    with torch.no_grad():
        assert candidate._fits_0(tuple(arguments)) is not None
        got, want = candidate(*arguments), reference(*arguments)
    torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5)
