"""Strict float32 products on tensor cores: indices in the emulator, accuracy in a model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from tests.proposers.playbook.candidates import problem
from tests.proposers.playbook.cuda.emulator import EmulatedModule

from kernelpro import inline
from kernelpro.evaluation.tolerance import RMS_SAFETY, bounds
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.recipes.base import Task
from kernelpro.proposers.playbook.recipes.cuda import SPLIT, CudaBackend
from kernelpro.schema.hardware import Device, Peaks

SMALL = dataclasses.replace(
    CudaKnobs(), **SPLIT | {"tile_m": 64, "tile_n": 64, "tile_k": 16, "stages": 2}
)
CASES = {
    "linear": ("return F.relu(self.l(x)) * 2", "x = torch.randn(70, 44)",
               "self.l = nn.Linear(44, 68)"),
    "odd_sizes": ("return x @ y + 1", "x = torch.randn(33, 19); y = torch.randn(19, 67)", "pass"),
    "columns": ("return x.t() @ y", "x = torch.randn(24, 68); y = torch.randn(24, 64)", "pass"),
    "batched": ("return torch.bmm(x, y)", "x = torch.randn(2, 8, 20); y = torch.randn(2, 20, 36)",
                "pass"),
}  # fmt: skip


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "cuda", lambda source, **_: EmulatedModule(source, tmp_path))


def _models(case: tuple[str, str, str], knobs: CudaKnobs) -> tuple[object, object, list[object]]:
    forward, inputs, init = case
    given = problem(forward, inputs, init)
    plans = [make_plan(g) for g in export_graphs(given)]
    bodies = [
        cuda_body(plan, knobs, number=i, units=132, precision="strict")
        for i, plan in enumerate(plans)
    ]
    assert "gemm_split<" in bodies[0].setup
    source = candidate_source(given, plans, bodies, "emulated").replace("t.is_cuda and", "")
    namespace: dict[str, object] = {"__name__": "candidate"}
    exec(compile(source, "candidate.py", "exec"), namespace)
    torch.manual_seed(0)
    arguments = namespace["get_inputs"]()  # type: ignore[operator]
    reference = namespace["Model"]()  # type: ignore[operator]
    candidate = namespace["ModelNew"]()  # type: ignore[operator]
    candidate.load_state_dict(reference.state_dict())
    return candidate, reference.double(), arguments


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("chunk", [8, 16])
def test_emulated(name: str, chunk: int) -> None:
    """TF32 alone would be out by 1e-3."""
    candidate, reference, given = _models(CASES[name], dataclasses.replace(SMALL, chunk_k=chunk))
    with torch.no_grad():
        got = candidate(*given)  # type: ignore[operator]
        want = reference(*[x.double() for x in given])  # type: ignore[operator, attr-defined]
    error = (got.double() - want).abs().max() / want.abs().max()
    assert error < 1e-6


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
def test_what_cannot_be_split_is_repaired() -> None:
    candidate, reference, (x, y) = _models(CASES["odd_sizes"], SMALL)
    x[3, 5], x[7, 0], x[9, 1] = float("inf"), 3e38, float("nan")
    y[0] *= 1e-3
    with torch.no_grad():
        got = candidate(x, y)  # type: ignore[operator]
        want = reference(x.double(), y.double()).float()  # type: ignore[operator]
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-5, equal_nan=True)
    assert torch.isinf(got[3]).all()
    assert torch.isfinite(got[7]).all()
    assert torch.isnan(got[9]).all()


def _truncated(x: torch.Tensor) -> torch.Tensor:
    """float64 to float32 towards zero: the worst that is known of tensor cores."""
    nearest = x.float()
    beyond = nearest.double().abs() > x.abs()
    return torch.where(beyond, torch.nextafter(nearest, torch.zeros_like(nearest)), nearest)


def _split(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """``split_tf32`` of gemm_split.cuh, with what the tensor core ignores cut off."""
    big = (x * 8193.0 + 0.0).double().add(-8192.0 * x.double()).float()
    small = x - big
    return big, (small.view(torch.int32) & ~0x1FFF).view(torch.float32)


def _product(x: torch.Tensor, y: torch.Tensor, chunk: int) -> torch.Tensor:
    """What gemm_split computes from (m, k) and (k, n)."""
    total = torch.zeros(x.shape[0], y.shape[1])
    for start in range(0, x.shape[1], chunk):
        part = torch.zeros_like(total)
        for k in range(start, min(start + chunk, x.shape[1]), 8):
            a_big, a_small = _split(x[:, k : k + 8])
            b_big, b_small = _split(y[k : k + 8])
            for a, b in ((a_small, b_big), (a_big, b_small), (a_big, b_big)):
                part = _truncated(part.double() + a.double() @ b.double())
        total += part
    return total


INPUTS = {
    "normal": lambda: (torch.randn(64, 4096), torch.randn(4096, 64)),
    "positive": lambda: (torch.rand(64, 4096), torch.rand(4096, 64)),
    "offset": lambda: (torch.randn(64, 4096) + 3, torch.randn(4096, 64) - 2),
    "uneven": lambda: (torch.randn(64, 4096) * torch.logspace(-3, 3, 4096),
                       torch.randn(4096, 64) * torch.logspace(3, -3, 4096)[:, None]),
}  # fmt: skip


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("chunk", [8, 32])
def test_long_sums_are_within_the_strict_bound(inputs: str, chunk: int) -> None:
    torch.manual_seed(3)
    x, y = INPUTS[inputs]()
    exact = x.double() @ y.double()
    bound = bounds(exact, x @ y, {}, reduction_length=4096)["strict"]
    error = _product(x, y, chunk).double() - exact
    assert (error.abs() <= bound.atol + bound.rtol * exact.abs()).all()
    assert error.square().mean().sqrt() <= bound.rms.min()
    # Float32's own error sets the bound's floor; ours stays near it, not just within the bound.
    own = (x @ y).double() - exact
    floor = bound.rms.min() / RMS_SAFETY
    assert error.square().mean().sqrt() <= max(2 * own.square().mean().sqrt(), floor / 2)


def test_tensor_cores_alone_would_drift() -> None:
    """Why partial sums are handed over: truncation is one-sided, and adds up."""
    torch.manual_seed(3)
    x, y = INPUTS["positive"]()
    exact = x.double() @ y.double()
    drift = {c: (_product(x, y, c).double() / exact - 1).mean().item() for c in (8, 4096)}
    assert drift[4096] < -1e-5
    assert abs(drift[8]) < 1e-6


def _task(forward: str, inputs: str, precision: str) -> Task:
    given = dataclasses.replace(problem(forward, inputs), precision=precision)
    device = Device(kind="cuda", name="t", uuid="u", units=132, memory_bytes=1 << 36)
    peaks = Peaks(copy_gb_s=4000.0, flops={"float32": 6e13}, source="estimated")
    return Task(given, export_graphs(given), device, peaks)


LARGE = ("return torch.relu(x @ y)", "x = torch.randn(4096, 256); y = torch.randn(256, 4096)")
LITTLE = ("return torch.relu(x @ y)", "x = torch.randn(64, 256); y = torch.randn(256, 64)")


@pytest.mark.parametrize(
    ("case", "precision", "order"),
    [
        (LARGE, "strict", ["split_tf32", "library", "simt"]),
        (LITTLE, "strict", ["library", "split_tf32", "simt"]),
        (LARGE, "tf32", ["tensor", "library", "simt"]),
    ],
)
def test_who_multiplies_first(case: tuple[str, str], precision: str, order: list[str]) -> None:
    tried = [v.knobs.matmul for v in CudaBackend().initial(_task(*case, precision))]
    assert tried[:3] == order


def test_moves_to_tensor_cores_and_back() -> None:
    task, move = _task(*LARGE, "strict"), CudaBackend().move
    split = move("use_tensor_cores", CudaKnobs(), task)
    assert isinstance(split, CudaKnobs)
    assert split.matmul == "split_tf32"
    assert move("use_tensor_cores", split, task) is None
    back = move("own_matmul", split, task)
    assert isinstance(back, CudaKnobs)
    assert back.matmul == "simt"
