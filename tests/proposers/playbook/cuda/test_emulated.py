"""Generated CUDA, run thread by thread on the CPU, agrees with torch: no GPU needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

DEFAULT = CudaKnobs()
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
    "masked_softmax": ("return torch.softmax((x * 2).masked_fill(~y, -1e9), -1)",
                       "x = torch.randn(2, 3, 512); y = torch.rand(3, 512) < 0.8", ""),
    "uneven_rows": ("return F.layer_norm(x + y, (1036,))",
                    "x = torch.randn(2, 1036); y = torch.randn(1036)", ""),
    "softmax_columns": ("return torch.softmax(x * x, 1)", "x = torch.randn(2, 70, 6)", ""),
    "transposed": ("return (x.t() + y * 2).contiguous()",
                   "x = torch.randn(68, 132); y = torch.randn(132, 68)", ""),
    "transposed_odd": ("return torch.relu(x.transpose(1, 2)).contiguous()",
                       "x = torch.randn(2, 37, 71)", ""),
    "channels_last": ("return (x.permute(0, 2, 3, 1) * y + z.permute(0, 2, 3, 1)).contiguous()",
                      "x = torch.randn(2, 12, 5, 6); y = torch.randn(12); "
                      "z = torch.randn(2, 12, 5, 6)", ""),
    "transposed_half": ("return x.t().contiguous() + y",
                        "x = torch.randn(24, 40).half(); y = torch.randn(40, 1)", ""),
    "transposed_double": ("return (x.t() * 2).contiguous()", "x = torch.randn(24, 40).double()",
                          ""),
    "group_norm": ("return self.n(x) * 2", "x = torch.randn(2, 6, 5, 8)",
                   "self.n = nn.GroupNorm(2, 6)"),
}  # fmt: skip


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "cuda", lambda source, **_: EmulatedModule(source, tmp_path))


def _source(given: Problem, units: int, knobs: CudaKnobs) -> str:
    plans = [make_plan(g) for g in export_graphs(given)]
    bodies = [
        cuda_body(plan, knobs, number=i, units=units, precision="strict")
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
    candidate, reference, arguments = _models(forward, inputs, init, units)
    with torch.no_grad():
        assert candidate._fits_0(tuple(arguments)) is not None
        got, want = candidate(*arguments), reference(*arguments)
    torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5)


def _models(
    forward: str, inputs: str, init: str, units: int, knobs: CudaKnobs = DEFAULT
) -> tuple[Any, Any, list[torch.Tensor]]:
    """(candidate, reference, arguments) with equal weights."""
    given = problem(forward, inputs, init or "pass")
    namespace: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(_source(given, units, knobs), "candidate.py", "exec"), namespace)
    torch.manual_seed(0)
    arguments = namespace["get_inputs"]()
    torch.manual_seed(1)
    reference = namespace["Model"]()
    torch.manual_seed(1)
    return namespace["ModelNew"](), reference, arguments


SOFTMAXES = {
    "rows": ("return torch.softmax(x, 1)", "x = torch.randn(12, 132)"),
    "log_rows": ("return F.log_softmax(x / 2, -1)", "x = torch.randn(12, 132)"),
    "columns": ("return torch.softmax(x, 1)", "x = torch.randn(12, 33, 4)"),
    "split": ("return torch.softmax(x, 1)", "x = torch.randn(12, 9000)"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", SOFTMAXES)
def test_online_softmax(name: str) -> None:
    """Rows as they come, and rows whose answer is not finite."""
    forward, inputs = SOFTMAXES[name]
    knobs = CudaKnobs(register_words=0, row_threads=64)
    candidate, reference, (x,) = _models(forward, inputs, "", 132, knobs)
    infinity, nan = float("inf"), float("nan")
    x[1] = -infinity
    x[2, 5], x[3, 5], x[4, 5], x[5, 5] = infinity, -infinity, nan, -3.4028234663852886e38
    x[6, 5:7], x[7, 5:7] = infinity, torch.tensor([infinity, nan]).reshape(2, *[1] * (x.dim() - 2))
    assert "SoftmaxSum<false>::include" in _source(problem(forward, inputs), 132, knobs)
    x[8], x[9, 5], x[10] = -3.4028234663852886e38, 3e38, 1e4 * x[10]
    with torch.no_grad():
        got, want = candidate(x), reference(x.double()).float()
    torch.testing.assert_close(got, want, rtol=3e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("forward", "inputs", "tiled"),
    [("x.t().contiguous() * 2", "x = torch.randn(64, 64)", 1),
     ("(x.t() + y.t()).contiguous()", "x = torch.randn(64, 64); y = torch.randn(64, 64)", 2),
     ("x.t().contiguous() * 2", "x = torch.randn(64, 3)", 0),
     ("x.permute(1, 0, 2).contiguous() * 2", "x = torch.randn(8, 64, 64)", 0),
     ("(x.t() * 2).sum(-1)", "x = torch.randn(64, 64)", 0)],
)  # fmt: skip
def test_only_crossed_reads_go_through_shared_memory(forward: str, inputs: str, tiled: int) -> None:
    given = problem(f"return {forward}", inputs)
    assert _source(given, 132, DEFAULT).count("__shared__ float tile") == tiled
    assert "float tile" not in _source(given, 132, CudaKnobs(staged=False))


def test_online_softmax_reads_long_rows_twice() -> None:
    given = problem("return torch.softmax(x, 1)", "x = torch.randn(300, 100000)")
    loads = {
        knobs: _source(given, 132, knobs).count("load_pack<float, 4, false>(g_x")
        for knobs in (CudaKnobs(), CudaKnobs(online=False))
    }
    assert list(loads.values()) == [2, 3]
