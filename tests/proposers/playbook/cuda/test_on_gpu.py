"""Generated CUDA against torch on the device, for every case and several settings of the knobs."""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.proposers.playbook.cuda.cases import CASES, Case

from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.proposers.playbook.candidate import candidate_source
from kernelpro.proposers.playbook.cuda.knobs import CudaKnobs
from kernelpro.proposers.playbook.cuda.unit import cuda_body
from kernelpro.proposers.playbook.plan.build import make_plan
from kernelpro.proposers.playbook.recipes.cuda import SPLIT

pytestmark = pytest.mark.gpu

DEFAULT = CudaKnobs()
SETTINGS = {
    "default": DEFAULT,
    "own_product": dataclasses.replace(DEFAULT, matmul="simt"),
    "split_tf32": dataclasses.replace(DEFAULT, **SPLIT),
    "tensor": dataclasses.replace(DEFAULT, matmul="tensor", tile_k=32),
    "unrolled": dataclasses.replace(DEFAULT, unroll=4, stream=True, blocks_per_unit=4),
    "narrow": dataclasses.replace(DEFAULT, lanes=1, register_words=0, row_threads=64, split=3),
    "fast": dataclasses.replace(DEFAULT, fast_math=True),
}
UNITS = 132


def _module(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def _tolerance(case: Case, setting: str) -> float:
    if case.precision == "half" or "half" in case.name or "bfloat" in case.name:
        return 3e-2
    if setting == "split_tf32":
        return 2e-6  # TF32 alone would be out by 1e-3
    return 3e-3 if case.precision == "tf32" else 2e-5 if setting != "fast" else 2e-4


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_matches_torch(
    case: Case, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    products = ("linear", "matmul", "bmm", "pointwise")
    if setting in ("own_product", "split_tf32") and not any(w in case.name for w in products):
        pytest.skip("no matrix product: this setting changes nothing")
    monkeypatch.setenv("KERNELPRO_BUILD_DIR", str(tmp_path / "build"))
    # torch lets convolutions use TF32 unless told otherwise; the referee tells it.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", case.precision != "strict")
    path = tmp_path / "problem.py"
    path.write_text(case.source(), encoding="utf-8")
    problem = load_problem(path)
    graphs = export_graphs(problem)
    plans = [make_plan(graph) for graph in graphs]
    bodies = [
        cuda_body(plan, SETTINGS[setting], number=i, units=UNITS, precision=problem.precision)
        for i, plan in enumerate(plans)
    ]
    source = candidate_source(problem, plans, bodies, case.name)
    module = _module(source, f"candidate_{case.name}_{setting}")
    torch.manual_seed(0)
    model = module.ModelNew().cuda()
    reference = module.Model().cuda()
    reference.load_state_dict(model.state_dict())
    inputs = [x.cuda() for x in module.get_inputs()]
    with torch.no_grad():
        assert model._fits_0(inputs) is not None, "the native path was not taken"
        actual = _flat(model(*inputs))
        exact = _flat(reference.double()(*[_double(x) for x in inputs]))
    for got, want in zip(actual, exact, strict=True):
        _compare(got, want, _tolerance(case, setting))


def _double(x: Any) -> Any:
    return x.double() if x.is_floating_point() else x


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _compare(got: Any, want: Any, tolerance: float) -> None:
    import torch

    assert got.shape == want.shape
    if not got.is_floating_point():
        assert torch.equal(got, want.to(got.dtype))
        return
    scale = want.abs().max().item() + 1e-30
    error = (got.double() - want).abs().max().item()
    assert error <= tolerance * scale, f"largest error {error:.3g} at scale {scale:.3g}"
