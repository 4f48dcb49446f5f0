"""Coarse answers that are the machine's doing are forgiven, those of a kernel never are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from problems_for_tests import make
from test_referee import QUICK

from kernelpro.evaluation.referee import Referee
from kernelpro.hardware import probe
from kernelpro.schema.outcome import Status

MATMUL = make("return x @ y", "torch.rand(64, 256), torch.rand(256, 64)", name="matmul")


def _coarse(when: str) -> str:
    """A matmul that computes in bfloat16 in the calls that ``when`` selects."""
    selected = re.sub(r"\bn\b", "ModelNew.calls", when)
    return f"""
import torch

class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x, y):
        ModelNew.calls += 1
        if {selected}:
            return (x.bfloat16() @ y.bfloat16()).float()
        return x @ y
"""


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    with Referee(MATMUL, probe("cpu"), QUICK, cache_root=tmp_path_factory.mktemp("c")) as made:
        yield made


@pytest.mark.parametrize("when", ["n == 2", pytest.param("n == 5", marks=pytest.mark.slow)])
def test_one_coarse_answer_that_does_not_come_again_is_the_machines(
    referee: Referee, when: str
) -> None:
    outcome = referee.evaluate(_coarse(when), checks="full")
    assert outcome.status is Status.OK, outcome.message
    assert any("one answer was too coarse" in w for w in outcome.evidence["warnings"])
    assert outcome.correctness is not None and outcome.correctness.precision_class == "strict"


SELECTIONS = [
    "True", "n in (2, 11)",
    *(pytest.param(when, marks=pytest.mark.slow) for when in ("n % 2", "n % 9 == 0")),
]  # fmt: skip


@pytest.mark.parametrize("when", SELECTIONS)
def test_a_kernel_that_is_coarse_more_than_once_is_refused(referee: Referee, when: str) -> None:
    outcome = referee.evaluate(_coarse(when), checks="full")
    assert outcome.status is Status.WRONG_RESULT
    assert "half precision" in outcome.message


def test_eager_is_held_to_what_it_gives_where_candidates_run(tmp_path: Path) -> None:
    """Stands for an operator that torch dispatches to other code in a subject's process."""
    problem = make(
        "return x * 1.5 if 'KERNELPRO_BUILD_DIR' not in __import__('os').environ "
        "else (x.double() * (1 + 2.0**-15) * 1.5).float()",
        "torch.rand(64, 64)",
    )
    same = problem.source.replace("class Model(", "class ModelNew(")
    coarser = same.replace("2.0**-15", "2.0**-9")
    with Referee(problem, probe("cpu"), QUICK, cache_root=tmp_path) as made:
        outcome = made.evaluate(same, checks="full")
        assert outcome.status is Status.OK, outcome.message
        assert any("less exact" in warning for warning in outcome.evidence["warnings"])
        assert made.evaluate(coarser).status is Status.WRONG_RESULT
