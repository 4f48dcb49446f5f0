"""Functions and module instances written into problem files."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kernelpro.errors import UserError
from kernelpro.problems import check_problem, load_problem
from kernelpro.problems.instantiate import ProblemModule

SCALE = 2.0
TABLE = torch.ones(3)


def halve(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * SCALE / math.pi


def chain(x: torch.Tensor, mask: torch.Tensor, other: float = 2.0) -> torch.Tensor:
    return torch.where(mask, halve(x), other)


def uses_a_global_tensor(x: torch.Tensor) -> torch.Tensor:
    return x + TABLE


def example_inputs() -> list[Any]:
    return [torch.randn(2, 3), torch.rand(2, 3) > 0.5]


class Block(nn.Module):
    """Tied weights, plain attributes, buffers, a function as attribute."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.Linear(size, size)
        self.second = nn.Linear(size, size)
        self.second.weight = self.first.weight
        self.activation = halve
        self.shape = (size,)
        self.register_buffer("positions", torch.arange(size), persistent=False)
        self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.activation(self.second(self.first(x)))) + self.positions


def test_a_function_with_helpers_and_constants_runs_on_its_own(tmp_path: Path) -> None:
    inputs = [torch.randn(4, 8), torch.rand(4, 8) > 0.5, 3.0]
    problem = load_problem(chain, inputs=inputs)
    assert (problem.name, problem.kind, problem.input_sets) == ("chain", "callable", 1)
    check_problem(problem)
    module = ProblemModule(problem)
    assert torch.equal(module.make_model()(*inputs), chain(*inputs))
    script = problem.source + "\nprint(tuple(Model()(*get_inputs()).shape))\n"
    (tmp_path / "alone.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-I", "alone.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(4, 8)"


def test_a_function_of_torch_is_imported() -> None:
    for function in (torch.softmax, F.softmax):
        problem = load_problem(function, inputs=[torch.randn(3, 4), -1])
        check_problem(problem)


def test_inputs_from_a_function() -> None:
    problem = load_problem(chain, inputs=example_inputs)
    assert len(ProblemModule(problem).make_inputs()) == 2
    check_problem(problem)


def test_a_module_instance_is_rebuilt_with_its_structure() -> None:
    block = Block(4)
    problem = load_problem(block, inputs=torch.randn(5, 4))
    check_problem(problem)
    rebuilt = ProblemModule(problem).make_model()
    assert [(n, tuple(p.shape)) for n, p in rebuilt.named_parameters()] == [
        (n, tuple(p.shape)) for n, p in block.named_parameters()
    ]
    assert rebuilt.state_dict().keys() == block.state_dict().keys()
    assert rebuilt.first.weight is rebuilt.second.weight
    assert torch.equal(rebuilt.positions, block.positions)
    rebuilt.load_state_dict(block.state_dict())
    x = torch.randn(5, 4)
    torch.testing.assert_close(rebuilt(x), block(x))
    assert torch.equal(rebuilt.norm.weight, block.norm.weight), "constants stay constants"


def test_evaluation_mode_and_compiled_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    for instance in (model, torch.compile(model)):
        rebuilt = ProblemModule(load_problem(instance, inputs=[torch.randn(2, 3)])).make_model()
        assert not any(module.training for module in rebuilt.modules())


def test_drawn_inputs_resemble_the_examples() -> None:
    examples = [
        torch.rand(50, 40) * 0.5,
        torch.randn(60, 30) * 10 + 5,
        torch.randint(3, 9, (100,)),
        torch.randn(1, 8).expand(5, 8),
        torch.randn(6, 4).t(),
        torch.rand(1000) < 0.1,
        torch.zeros(2, 2),
        torch.randn(3, dtype=torch.float64),
        torch.randn(4).to(torch.bfloat16),
    ]
    problem = load_problem(example_inputs, inputs=examples)
    torch.manual_seed(0)
    drawn = ProblemModule(problem).make_inputs()
    for example, new in zip(examples, drawn, strict=True):
        assert (new.shape, new.dtype) == (example.shape, example.dtype)
        assert new.stride() == example.stride()
    assert drawn[0].min() >= 0 and drawn[0].max() <= 0.5
    assert abs(drawn[1].mean() - 5) < 2 and abs(drawn[1].std() - 10) < 1
    assert drawn[2].min() >= 3 and drawn[2].max() <= 8
    assert 0.02 < drawn[5].float().mean() < 0.2
    assert not torch.equal(drawn[1], examples[1])


def closure() -> Any:
    captured = torch.ones(3)

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + captured

    return inner


class Hooked(nn.Linear):
    pass


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: lambda x: x, "write it as a def"),
        (closure, "captured"),
        (lambda: uses_a_global_tensor, "pass it as an input"),
        (lambda: functools.partial(halve), "partial"),
        (lambda: Block, "pass an instance"),
    ],
)
def test_what_no_file_can_hold_is_refused(make: Any, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        load_problem(make(), inputs=[torch.randn(3)])


def test_hooks_are_refused() -> None:
    model = Hooked(3, 3)
    model.register_forward_hook(lambda *_: None)
    with pytest.raises(UserError, match="has hooks"):
        load_problem(model, inputs=[torch.randn(2, 3)])


def test_a_callable_needs_inputs() -> None:
    with pytest.raises(UserError, match="needs example inputs"):
        load_problem(halve)
    with pytest.raises(UserError, match="list of positional"):
        load_problem(halve, inputs={"x": torch.randn(3)})


def test_large_integer_buffers_are_refused_with_their_name() -> None:
    model = nn.Linear(2, 2)
    model.register_buffer("permutation", torch.randperm(5000))
    with pytest.raises(UserError, match="permutation"):
        load_problem(model, inputs=[torch.randn(1, 2)])
