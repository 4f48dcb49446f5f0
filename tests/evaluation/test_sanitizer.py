"""compute-sanitizer around a finalist: what its logs mean, and real stray writes on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from problems_for_tests import make
from test_referee import QUICK

from kernelpro.evaluation import sanitizer
from kernelpro.evaluation.referee import Referee
from kernelpro.hardware import probe
from kernelpro.schema.outcome import Status

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at writes_beyond(float *, int)+0x70 in candidate.cu:3
=========     by thread (231,0,0) in block (3,0,0)
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"

Stand = Callable[[str], Path]


@pytest.fixture
def tool(tmp_path: Path) -> Stand:
    """A script that stands in for compute-sanitizer: real processes, exit codes and deadlines."""

    def make_tool(body: str) -> Path:
        path = tmp_path / "compute-sanitizer"
        path.write_text(
            "#!/usr/bin/env python3\nimport os, sys, time\n"
            "log = open(sys.argv[sys.argv.index('--log-file') + 1], 'w')\n" + body
        )
        path.chmod(0o755)
        return path

    return make_tool


def run(program: Path, tmp_path: Path) -> sanitizer.Said:
    return sanitizer.run(program, "memcheck", "source", tmp_path / "build", {"device": "cuda:0"})


def test_the_first_complaint_is_named_with_its_place() -> None:
    said = sanitizer.read(sanitizer.ERROR_EXIT, MEMCHECK, "")
    assert said.errors == (
        "Invalid __global__ write of size 4 bytes at writes_beyond(float *, int)+0x70 in "
        "candidate.cu:3"
    )
    assert not said.failed


def test_a_clean_log_is_clean_and_a_crash_is_neither() -> None:
    assert sanitizer.read(0, CLEAN, "") == sanitizer.Said()
    crashed = sanitizer.read(1, CLEAN, "Traceback\nRuntimeError: no device")
    assert crashed.failed == "the program ended with code 1: RuntimeError: no device"
    assert not crashed.errors
    assert "within" in sanitizer.read(None, "", "").failed
    ended_early = sanitizer.read(0, "========= COMPUTE-SANITIZER\n", "")
    assert ended_early.failed and ended_early != sanitizer.Said(), "silence is no verdict"
    hazards = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
    assert sanitizer.read(0, hazards, "") == sanitizer.Said()


def test_the_tool_gets_the_job_and_an_allocation_a_tensor(tool: Stand, tmp_path: Path) -> None:
    program = tool(
        "assert os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'] == '1'\n"
        "assert open(os.path.dirname(sys.argv[-2]) + '/candidate.py').read() == 'source'\n"
        f"log.write({MEMCHECK!r})\nlog.close()\nsys.exit({sanitizer.ERROR_EXIT})\n"
    )
    assert run(program, tmp_path).errors.startswith("Invalid __global__ write")


def test_a_tool_that_hangs_is_ended(
    tool: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanitizer, "TIMEOUT_S", 0.5)
    assert "not done" in run(tool("time.sleep(60)\n"), tmp_path).failed


def test_a_tool_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    assert "No such file" in run(tmp_path / "nothing", tmp_path).failed


CUDA = '''
import torch
from kernelpro import inline

SOURCE = r"""
extern "C" __global__ void twice(const float* x, float* out, int n, int beyond) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n + beyond) out[i] = i < n ? 2.0f * x[i] : 0.0f;
}}
"""


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.module = inline.cuda(SOURCE)

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        self.module.twice[(n + 255 + {beyond}) // 256, 256](x, out, n, {beyond})
        return out
'''


@pytest.mark.gpu
def test_a_finalist_that_writes_beyond_its_output_is_not_delivered(tmp_path: Path) -> None:
    problem = make("return x * 2", "torch.randn(1000, 1000)")
    # So little that it stays inside what torch's allocator rounds up to: no other check sees it.
    with Referee(problem, probe("cuda:0"), QUICK, cache_root=tmp_path) as referee:
        beyond, honest = referee.remeasure([CUDA.format(beyond=32), CUDA.format(beyond=0)])
    assert honest.status is Status.OK, honest.message
    found = {c.check: c for c in honest.integrity}[sanitizer.CHECK]
    assert found.passed is True, found.detail
    assert beyond.status is Status.CHEATING
    found = {c.check: c for c in beyond.integrity}[sanitizer.CHECK]
    assert found.passed is False and "Invalid __global__ write" in found.detail
    print(beyond.evidence["sanitizer"], honest.evidence["sanitizer"])
