"""Legal but unusual problems: the reference itself, handed in as candidate, must be accepted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from problems_for_tests import make
from test_referee import QUICK

from kernelpro.evaluation.referee import Referee
from kernelpro.hardware import probe
from kernelpro.problems.kernelbench import problem_from_source
from kernelpro.schema.outcome import Outcome, Status
from kernelpro.schema.problem import Problem


def _as_candidate(problem: Problem) -> str:
    return problem.source.replace("class Model(", "class ModelNew(")


def _evaluate(problem: Problem, source: str, cache: Path) -> Outcome:
    with Referee(problem, probe("cpu"), QUICK, cache_root=cache) as referee:
        return referee.evaluate(source, checks="full")


ODD = {
    "dict_of_mixed": make(
        "return {'max': x.max(-1), 'any': (x > 0.9).any(-1), 'n': 3, 'none': None}",
        "torch.rand(64, 100)",
    ),
    "class_labels": make(
        "return F.cross_entropy(x, y)", "torch.rand(64, 10), torch.randint(0, 10, (64,))"
    ),
    "embedding": make(
        "return self.e(x).mean(1)", "torch.randint(0, 50, (32, 20))",
        constructor="self.e = torch.nn.Embedding(50, 16)",
    ),
    "complex_numbers": make("return torch.fft.rfft(x)", "torch.rand(16, 256)"),
    "bfloat16": make(
        "return self.l(x)", "torch.randn(32, 64, dtype=torch.bfloat16)",
        constructor="self.l = torch.nn.Linear(64, 32, dtype=torch.bfloat16)", precision="half",
    ),
    "lstm": make(
        "return self.l(x)[0]", "torch.randn(4, 8, 16)",
        constructor="self.l = torch.nn.LSTM(16, 8, batch_first=True)",
    ),
    "transposed_view_of_strided_input": make(
        "return x.transpose(1, 2)", "torch.rand(8, 30, 20)[:, ::2]"
    ),
    "works_in_place": make("return x.mul_(2).add_(1)", "torch.rand(64, 64)"),
    "infinite_where_masked": make(
        "return x.masked_fill(y, float('-inf'))", "torch.rand(64, 64), torch.rand(64, 64) > 0.5"
    ),
    "undefined_outside_its_domain": make("return torch.log(x) - torch.log1p(-x)",
                                         "torch.rand(64, 64) * 0.8 + 0.1"),
    "always_zero": make("y = x.sum(1, keepdim=True)\n        return y - y.mean(1, keepdim=True)",
                        "torch.rand(64, 64)"),
    "convolution_and_batch_norm": make(
        "return torch.relu(self.b(self.c(x)))", "torch.rand(4, 3, 12, 12)",
        constructor="self.c = torch.nn.Conv2d(3, 8, 3); self.b = torch.nn.BatchNorm2d(8)",
    ),
    "constructor_tensors": make(
        "return x * self.s", "torch.rand(16, 8)", init="[torch.rand(8), 3]",
        constructor="self.s = torch.nn.Parameter(args[0] * args[1])",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_the_reference_as_candidate_is_accepted(name: str, tmp_path: Path) -> None:
    outcome = _evaluate(ODD[name], _as_candidate(ODD[name]), tmp_path)
    assert outcome.status is Status.OK, outcome.message
    assert outcome.correctness is not None and outcome.correctness.precision_class == "strict"


SETS = problem_from_source(
    """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)

def square():
    return [torch.rand(32, 32)]

def ragged():
    return [torch.randn(7, 33)]

INPUT_SETS = [square, ragged]
get_inputs = square

def get_init_inputs():
    return []
""",
    name="sets",
    origin="sets.py",
    kind="file",
)


def test_every_input_set_counts(tmp_path: Path) -> None:
    only_square = _as_candidate(SETS).replace(
        "return torch.softmax(x, -1)",
        "return torch.softmax(x, -1) if x.shape[1] == 32 else torch.zeros_like(x)",
    )
    with Referee(SETS, probe("cpu"), QUICK, cache_root=tmp_path) as referee:
        assert referee.evaluate(_as_candidate(SETS), checks="full").status is Status.OK
        assert referee.evaluate(only_square, checks="fast").status is Status.WRONG_RESULT


def test_precision_that_the_problem_allows_is_accepted_and_named(tmp_path: Path) -> None:
    strict = make("return x @ y", "torch.rand(64, 256), torch.rand(256, 64)")
    source = _as_candidate(strict).replace(
        "return x @ y", "return (x.bfloat16() @ y.bfloat16()).float()"
    )
    with Referee(strict, probe("cpu"), QUICK, cache_root=tmp_path) as referee:
        refused = referee.evaluate(source)
    assert refused.status is Status.WRONG_RESULT and "half precision" in refused.message
    allowed = dataclasses.replace(strict, precision="half")
    with Referee(allowed, probe("cpu"), QUICK, cache_root=tmp_path) as referee:
        accepted = referee.evaluate(source)
    assert accepted.status is Status.OK, accepted.message
    assert accepted.correctness is not None and accepted.correctness.precision_class == "half"


def test_a_task_that_cannot_tell_right_from_wrong_is_labelled(tmp_path: Path) -> None:
    outcome = _evaluate(ODD["always_zero"], _as_candidate(ODD["always_zero"]), tmp_path)
    passing = outcome.evidence["controls_passing"]
    assert all("zeros" in names for names in passing.values()) and passing
