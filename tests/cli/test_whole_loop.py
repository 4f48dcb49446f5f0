"""The commands a newcomer types, for real: own process, own compiler, own device."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x * y + x).sum(-1)


def get_inputs():
    return [torch.randn(512, 700) + torch.randn(512, 1), torch.randn(512, 700)]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.relu(torch.addcmul(x, x, y)).sum(-1)
"""
WRONG = CANDIDATE.replace(".sum(-1)", ".mean(-1)")


@pytest.fixture
def folder(tmp_path):
    for name, text in (("p.py", PROBLEM), ("good.py", CANDIDATE), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(text)
    return tmp_path


def kernelpro(folder, *arguments, **options):
    environment = {**os.environ, "KERNELPRO_RUNS": str(folder / "runs"), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "kernelpro", *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, check=False, timeout=600, **options,
    )  # fmt: skip


def test_evaluate_prints_the_object_of_the_design(folder):
    done = kernelpro(folder, "evaluate", "p.py", "good.py", "--checks", "fast", "--json")
    outcome = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert outcome["status"] == "ok"
    assert set(outcome) >= {"status", "stage", "message", "speedup", "baselines", "latency",
                            "correctness", "integrity", "energy", "environment"}  # fmt: skip
    assert set(outcome["latency"]) >= {"median_us", "ci95_us", "samples", "timer"}
    assert {"max_abs_error", "max_rel_error", "tolerance", "trials", "precision_class"} <= set(
        outcome["correctness"]
    )


def test_a_wrong_candidate_is_exit_code_1(folder):
    done = kernelpro(folder, "evaluate", "p.py", "wrong.py", "--checks", "fast")
    assert done.returncode == 1
    assert "wrong result" in done.stdout


def test_optimize_leaves_a_file_that_runs_without_kernelpro_and_a_report(folder):
    # Two in flight: the second one is judged even where the first is at the roofline.
    done = kernelpro(folder, "optimize", "p.py", "--evaluations", "2", "--parallel", "2", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    run = folder / "runs" / result["run_id"]
    assert "2/2" in done.stderr
    assert (run / "report.html").stat().st_size > 10_000
    if not result["keep_eager"]:
        text = (run / "best.py").read_text()
        assert "import kernelpro" not in text
    again = kernelpro(folder, "optimize", "--resume", "latest", "--evaluations", "3", "--quiet")
    assert again.returncode == 0, again.stderr
    assert "attempts in" in again.stdout


def test_an_interrupted_run_says_how_to_go_on(folder):
    environment = {**os.environ, "KERNELPRO_RUNS": str(folder / "runs"), "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelpro", "optimize", "p.py", "--evaluations", "50"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("run "):
            break
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "kernelpro optimize --resume" in out


def test_a_writer_outside_is_judged_and_advised(folder):
    run_id = kernelpro(folder, "start", "p.py", "--evaluations", "1").stdout.strip()
    asked = json.loads(kernelpro(folder, "ask", run_id, "--json").stdout)
    assert asked["requests"][0]["request"] == 1
    told = kernelpro(folder, "tell", run_id, "good.py", "--request", "1")
    assert told.returncode == 0, told.stderr
    assert "what to do next" in told.stdout
    assert "ended: the evaluation budget was used up" in told.stdout
    assert (folder / "runs" / run_id / "report.html").is_file()
