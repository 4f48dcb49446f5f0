"""The examples are complete problems whose outputs depend on their inputs and weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.problems.instantiate import ProblemModule

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = sorted(p.stem for p in FOLDER.glob("*.py") if "class Model" in p.read_text())


def test_every_example_has_a_gpu_twin_of_the_same_model() -> None:
    assert len(NAMES) == 6
    for name in NAMES:
        here = (FOLDER / f"{name}.py").read_text()
        there = (FOLDER / "gpu" / f"{name}.py").read_text()
        assert here.partition("class Model")[2] == there.partition("class Model")[2]
        load_problem(FOLDER / "gpu" / f"{name}.py")


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str) -> None:
    problem = load_problem(FOLDER / f"{name}.py")
    (graph,) = export_graphs(problem)
    assert graph.nodes and graph.compulsory_bytes > 0
    module = ProblemModule(problem)
    model = module.make_model()
    with torch.no_grad():
        first, second = (leaves(model(*module.make_inputs())) for _ in range(2))
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    for output, other in zip(first, second, strict=True):
        assert torch.isfinite(output).all()
        assert not torch.allclose(output, other, rtol=1e-2, atol=1e-2)
        assert not torch.allclose(output, torch.zeros_like(output), rtol=1e-2, atol=1e-2)


def leaves(value: object) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]  # type: ignore[list-item]
