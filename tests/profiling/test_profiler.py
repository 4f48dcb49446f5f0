"""The whole CPU profile of real candidates, run in isolation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.hardware.base import probe
from kernelpro.problems import load_problem
from kernelpro.problems.export import export_graphs
from kernelpro.profiling.profiler import profile_candidate
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.hardware import Peaks
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile

from .cpu.compiled import needs_tools

pytestmark = needs_tools

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(n))
    def forward(self, x):
        return torch.tanh(x) * self.w
def get_inputs():
    return [torch.randn(64, 2048)]
def get_init_inputs():
    return [2048]
"""
NATIVE = '''
import torch
from kernelpro import inline
SOURCE = """
#include <cmath>
#include <cstdint>
extern "C" void tail(const float* x, const float* w, float* y, int64_t rows, int64_t n) {
  #pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) y[r * n + i] = tanhf(x[r * n + i]) * w[i];
}
"""
library = inline.cpp(SOURCE)
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(n))
    def forward(self, x):
        y = torch.empty_like(x)
        library.tail(x, self.w, y, x.shape[0], x.shape[1])
        return y
'''
FRAMEWORK = PROBLEM.replace("Model(", "ModelNew(")
PEAKS = Peaks(copy_gb_s=20.0, flops={"float32": 1e11}, source="specification")


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM)
    return load_problem(path)


def profile(problem: Problem, source: str, folder: Path) -> Profile:
    (graph,) = export_graphs(problem)
    result = profile_candidate(problem, source, folder, probe("cpu"), PEAKS, None, graph)
    assert loads(Profile, dumps(result)) == result
    return result


def test_a_native_candidate(problem: Problem, tmp_path: Path) -> None:
    result = profile(problem, NATIVE, tmp_path / "build")
    (kernel,) = result.kernels
    assert (kernel.name, kernel.launches) == ("tail", 1)
    assert kernel.duration_us is not None and kernel.duration_us > 0
    assert kernel.value("cpu.libm_calls_in_loop") == 1
    assert kernel.value("cpu.uses_openmp") == 1
    assert result.system is not None
    share = result.system.value("cpu.native_time_share")
    assert share is not None and 0 < share <= 1
    assert {row["kind"] for row in result.system.operators} == {"native", "framework"}
    assert result.system.value("cpu.achieved_gb_s")
    assert result.system.value("cpu.denormal_input_share") == 0
    assert "tail" in result.selected and result.seconds > 0
    known = set(kernel.metrics) | set(result.system.metrics)
    assert not known & {name for entry in result.missing for name in entry.what.split(", ")}


def test_a_candidate_of_framework_operators(problem: Problem, tmp_path: Path) -> None:
    result = profile(problem, FRAMEWORK, tmp_path / "build")
    assert result.kernels == ()
    assert "native functions" in {entry.what for entry in result.missing}
    assert result.system is not None
    share = result.system.value("cpu.framework_time_share")
    assert share is not None and share > 0
    assert result.system.value("cpu.native_time_share") is None
    names = {row["name"] for row in result.system.operators}
    assert {"aten::tanh", "aten::mul"} <= names


@pytest.mark.parametrize(
    "body", ["raise ValueError('boom')", "import os; os._exit(3)", "return {'a': 1}['b']"]
)
def test_a_candidate_that_fails_under_observation(
    problem: Problem, tmp_path: Path, body: str
) -> None:
    source = FRAMEWORK.replace("return torch.tanh(x) * self.w", body)
    result = profile(problem, source, tmp_path / "build")
    assert "observed run" in {entry.what for entry in result.missing}
    assert result.system is not None
    assert result.system.value("cpu.call_us") is None


def test_subnormal_numbers_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "tiny.py"
    path.write_text(PROBLEM.replace("torch.randn(64, 2048)", "torch.randn(64, 2048) * 1e-39"))
    problem = load_problem(path)
    result = profile(problem, FRAMEWORK, tmp_path / "build")
    assert result.system is not None
    for name in ("cpu.denormal_input_share", "cpu.denormal_output_share"):
        value = result.system.value(name)
        assert value is not None and value > 0.9
