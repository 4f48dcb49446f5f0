"""The energy move for kernels that saturate memory: a persistent grid on part of the device."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.proposers.playbook.cuda.cases import Case

from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.recipes.base import Task
from kernelpro.proposers.playbook.recipes.cuda import CudaBackend
from kernelpro.schema.hardware import Device, Peaks

GPU = Device(kind="cuda", name="t", uuid="u", units=132, memory_bytes=1 << 36)
PEAKS = Peaks(copy_gb_s=4000.0, flops={"float32": 6e13}, source="estimated")
LARGE = Case("large", "torch.relu(x) * 2", "torch.randn(4096, 4096)")


def test_each_step_takes_a_quarter_of_the_device_and_half_remains(tmp_path: Path) -> None:
    path = tmp_path / "problem.py"
    path.write_text(LARGE.source(), encoding="utf-8")
    problem = load_problem(path)
    graphs = export_graphs(problem)
    task, move = Task(problem, graphs, GPU, PEAKS), CudaBackend().move
    three = move("fewer_multiprocessors", CudaKnobs(), task)
    assert isinstance(three, CudaKnobs)
    half = move("fewer_multiprocessors", three, task)
    assert isinstance(half, CudaKnobs)
    assert (three.unit_share, half.unit_share) == (0.75, 0.5)
    assert move("fewer_multiprocessors", half, task) is None
    body = cuda_body(make_plan(graphs[0]), three, number=0, units=132, precision="strict")
    assert "99" in f"{body}", "three quarters of 132, one block each"
    assert "gridDim.x" in body.setup


@pytest.mark.parametrize("forward", ["x.sum(-1)", "torch.softmax(x, -1)"])
def test_reductions_keep_their_grid(forward: str, tmp_path: Path) -> None:
    path = tmp_path / "problem.py"
    path.write_text(Case("row", forward, "torch.randn(64, 64)").source(), encoding="utf-8")
    problem = load_problem(path)
    task = Task(problem, export_graphs(problem), GPU, PEAKS)
    assert CudaBackend().move("fewer_multiprocessors", CudaKnobs(), task) is None
