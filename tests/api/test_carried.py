"""``benchmarks/scale/carried.sh``: a whole run in rounds, each side seeing copies of files only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale" / "carried.sh"
PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2.0 + 1.0)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""


def carried(folder: Path, *words: str, cache: str = "here", **environment: str) -> str:
    done = subprocess.run(
        ["bash", str(SCRIPT), *words], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHON": sys.executable, "KERNELPRO_CACHE": str(folder / cache),
             **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def worked(folder: Path, **environment: str) -> str:
    """A visit to the other machine: a copy of the spool goes there, one archive comes back."""
    shutil.rmtree(folder / "there", ignore_errors=True)
    shutil.copytree(folder / "spool", folder / "there")
    return carried(
        folder, "work", "there", "out", "--device", "cpu", cache="cache-there", **environment
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_is_carried_in_three_rounds_though_one_runs_out_of_time(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM)
    options = ["--runs", "runs", "--evaluations", "3", "--parallel", "3"]
    said = carried(tmp_path, "start", "problem.py", "spool", *options)
    try:
        assert said == "1 jobs to carry\n", "the survey"
        assert "0 results" in worked(tmp_path, LIMIT_S="1"), "an empty round is no fault"
        assert carried(tmp_path, "collect", "spool", "out/results.tar.gz") == said
        assert "1 results" in worked(tmp_path)
        assert carried(tmp_path, "collect", "spool", "out/results.tar.gz") == "3 jobs to carry\n"
        # The controller ends in between, and another goes on.
        carried(tmp_path, "stop", "spool")
        (run,) = [path.name for path in (tmp_path / "runs").iterdir() if path.is_dir()]
        said = carried(tmp_path, "resume", run, "spool", "--runs", "runs")
        assert said == "3 jobs to carry\n"
        assert "3 results" in worked(tmp_path)
        said = carried(tmp_path, "collect", "spool", "out/results.tar.gz")
        if said == "1 jobs to carry\n":  # nothing to measure again if nothing was accepted
            worked(tmp_path)
            said = carried(tmp_path, "collect", "spool", "out/results.tar.gz")
    finally:
        subprocess.run(["bash", str(SCRIPT), "stop", "spool"], cwd=tmp_path, check=False,
                       capture_output=True)  # fmt: skip
    assert said.startswith("ended with exit status 0\n")
    assert re.search(r"3 attempts in ", said)
