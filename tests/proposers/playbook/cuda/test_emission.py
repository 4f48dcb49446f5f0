"""Every case compiles for a GPU that need not be here."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest
from tests.proposers.playbook.cuda.cases import CASES, Case

from kernelpro import inline
from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.plan.ir import AtenCall

FEW = ("add_bias", "softmax_dim1", "argmax", "linear_gelu", "linear_tf32", "sum_all")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc to compile CUDA")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in FEW else pytest.mark.slow)
        for case in CASES
    ],
)
def test_compiles(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.setenv("KERNELPRO_CUDA_ARCH", os.environ.get("KERNELPRO_CUDA_ARCH", "sm_90a"))
    path = tmp_path / "problem.py"
    path.write_text(case.source(), encoding="utf-8")
    problem = load_problem(path)
    plan = make_plan(export_graphs(problem)[0])
    assert not all(isinstance(step, AtenCall) for step in plan.steps), plan.coverage.library
    knobs = CudaKnobs(matmul="simt")
    tensor = "split_tf32" if case.precision == "strict" else "tensor"
    for setting in (knobs, dataclasses.replace(knobs, lanes=1, split=3, matmul=tensor)):
        body = cuda_body(plan, setting, number=0, units=132, precision=problem.precision)
        scope: dict[str, object] = {}
        exec(body.setup.split("\n_cuda_0 = ")[0], scope)
        module = inline.cuda(str(scope["_SOURCE_0"]))
        assert module.image[:4] == b"\x7fELF"
