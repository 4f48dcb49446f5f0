"""The options of ``kernelpro evaluate`` that decide what a candidate may do."""

from __future__ import annotations

from pathlib import Path

import pytest

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(64, 64)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    problem, candidate = tmp_path / "problem.py", tmp_path / "candidate.py"
    problem.write_text(PROBLEM)
    candidate.write_text(PROBLEM.replace("class Model(", "class ModelNew("))
    return problem, candidate


def test_an_unknown_sandbox_is_named(run, files) -> None:
    done = run("evaluate", *files, "--device", "cpu", "--sandbox", "tight")
    assert done.code == 2
    assert "--sandbox must be one of strict, best-effort, off" in done.err


@pytest.mark.slow
def test_library_calls_can_be_forbidden(run, files) -> None:
    done = run("evaluate", *files, "--device", "cpu", "--no-library-calls", "--checks", "fast")
    assert done.code == 1
    assert "library_calls" in done.out
