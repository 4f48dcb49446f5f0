"""The suite for real: a worker that dies, generations of others, coverage, lint, the draw."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest
import torch
from tests.bench.kernelbench_samples import CHECKOUT
from typer.testing import CliRunner

from kernelpro.api.kernelbench import coverage_kernelbench, lint_kernelbench, run_kernelbench
from kernelpro.bench.kernelbench_record import TaskResult
from kernelpro.bench.kernelbench_suite import Suite
from kernelpro.bench.kernelbench_tasks import TaskKey, find_tasks
from kernelpro.bench.kernelbench_versus import tolerance_used, versus
from kernelpro.cli.main import app
from kernelpro.hardware import probe
from kernelpro.schema.config import EvaluationConfig

ROOT = Path(__file__).parents[2]
QUICK = EvaluationConfig(
    timing_rounds=4, max_time_s=1.0, min_time_ms=1.0, target_ci=0.5, compile_baseline=False
)
GOOD = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2.0 - 1.0) + torch.tanh(x)
"""
WRONG = GOOD.replace("2.0", "2.001")


@pytest.mark.slow
def test_crashes_and_faults_never_end_the_suite(tmp_path: Path) -> None:
    seen: list[TaskResult] = []
    report = run_kernelbench(
        CHECKOUT, tmp_path / "suite", levels=[3], tasks="1,2", device="cpu", evaluation=QUICK,
        evaluations=1, on_result=seen.append,
    )  # fmt: skip
    assert [(str(r.key), r.state, r.fault) for r in seen] == [
        ("L3/1", "failed", "crash"), ("L3/2", "failed", "problem"),
    ]  # fmt: skip
    assert "mat1 and mat2" in seen[1].detail
    assert len(report.rows) == 2
    # Nothing is tried again, and nothing is started for it.
    run_kernelbench(
        CHECKOUT, tmp_path / "suite", levels=[3], tasks="1,2", device="cpu", evaluation=QUICK,
        evaluations=1, on_result=seen.append,
    )  # fmt: skip
    assert len(seen) == 2


@pytest.mark.slow
def test_the_loop_leaves_runs_and_hands_eager_back_where_nothing_is_better(tmp_path: Path) -> None:
    seen: list[TaskResult] = []
    run_kernelbench(
        CHECKOUT, tmp_path, tasks="L1/1,L3/3", device="cpu", evaluation=QUICK, evaluations=1,
        precision="half", on_result=seen.append,
    )  # fmt: skip
    first, unknown = seen
    assert first.state in ("improved", "eager_kept") and first.written == 1
    assert (tmp_path / "runs" / first.run / "report.html").exists()
    assert (unknown.state, unknown.speedup, unknown.written) == ("eager_kept", 1.0, 0)
    assert "nothing to propose" in unknown.detail
    for each in seen:
        assert each.versus is not None
        assert {"eager", "strict_eager"} <= set(each.versus.latencies)
    if first.state == "improved":
        assert (tmp_path / first.source).read_text().count("class ModelNew") == 1


@pytest.mark.slow
def test_generations_of_others_are_scored_sample_by_sample(tmp_path: Path) -> None:
    folder = tmp_path / "their_model"
    folder.mkdir()
    (folder / "level_1_problem_1_sample_0_kernel.py").write_text(WRONG)
    (folder / "level_1_problem_1_sample_1_kernel.py").write_text(GOOD)
    (folder / "level_1_problem_2_sample_0_kernel.py").write_text("syntax error(")
    run_kernelbench(
        CHECKOUT, tmp_path / "suite", device="cpu", evaluation=QUICK, generations=folder
    )
    suite = Suite.open(tmp_path / "suite")
    assert suite.config.imported == "their_model"
    first, second = suite.results()
    assert [s.outcome.status.value for s in first.samples] == ["wrong_result", "ok"]
    assert first.title == "sample 1" and first.solved
    assert (second.state, second.solved) == ("unsolved", False)
    assert second.samples[0].outcome.status.value == "rejected"
    assert "zero" in second.labels


@pytest.mark.slow
def test_versus_holds_timed_answers_against_the_papers_tolerance(tmp_path: Path) -> None:
    problem = find_tasks(CHECKOUT, [1], "1")[0].load("half")
    device = probe("cpu")
    for source, passes in ((GOOD, True), (GOOD.replace("2.0", "2.1"), False)):
        played = versus(
            problem, source, device, QUICK, peaks=None, cache_root=tmp_path, with_compiled=False
        )
        assert not played.missing
        assert played.answers_checked > 0
        assert played.paper_tolerance_passed is passes
        assert played.paper_like is not None and played.paper_like > 0


@pytest.mark.slow
def test_lint_of_a_checkout_goes_on_where_it_was(tmp_path: Path) -> None:
    path, seen = tmp_path / "lint.json", []
    found = lint_kernelbench(
        CHECKOUT, path, levels=[1, 3], tasks="L1/2,L3/2", device="cpu",
        on_entry=lambda task, entry: seen.append(str(task.key)),
    )  # fmt: skip
    assert "zero" in found.tasks["L1/2"].labels
    assert "zeros" in found.tasks["L1/2"].controls_passing["default"]
    assert "mat1 and mat2" in found.tasks["L3/2"].error
    lint_kernelbench(
        CHECKOUT, path, levels=[1], device="cpu",
        on_entry=lambda task, entry: seen.append(str(task.key)),
    )  # fmt: skip
    assert seen == ["L1/2", "L3/2", "L1/1"]


def test_tolerance_used_by_hand() -> None:
    eager = torch.tensor([0.0, 10.0, math.inf, math.nan])
    assert tolerance_used(eager.clone(), eager) == 0.0
    assert tolerance_used(torch.tensor([0.01, 10.0]), eager[:2]) == pytest.approx(1.0)
    assert tolerance_used(torch.tensor([0.0, 10.03]), eager[:2]) == pytest.approx(1.5, rel=1e-4)
    assert tolerance_used(torch.tensor([math.nan]), eager[:1]) == math.inf
    assert tolerance_used(torch.tensor([1e30]), eager[2:3]) == math.inf
    assert tolerance_used(torch.empty(0), torch.empty(0)) == 0.0


def test_coverage_needs_neither_gpu_nor_values() -> None:
    found = {str(c.key): c for c in coverage_kernelbench(CHECKOUT, tasks="L1/1,L2/1,L3/3")}
    assert (found["L1/1"].extent, found["L1/1"].kernels) == ("full", 1)
    assert (found["L2/1"].extent, found["L2/1"].products) == ("full", 1)
    assert found["L3/3"].extent == "refused"
    assert "sort" in found["L3/3"].reason


def test_the_draw_is_what_its_script_draws() -> None:
    folder = ROOT / "benchmarks" / "kernelbench"
    spec = importlib.util.spec_from_file_location("draw", folder / "draw.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = module.draw()
    assert json.loads((folder / "draw.json").read_text()) == drawn
    assert [len(tasks) for tasks in drawn["sample"].values()] == [10, 8, 6]
    keys = {f"{level}/{t['task']}" for level, tasks in drawn["sample"].items() for t in tasks}
    assert not keys & set(drawn["excluded"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--root"),
        (["--root", str(CHECKOUT), "--level", "7"], "--level"),
        (["--root", str(CHECKOUT), "--shard", "3/2"], "--shard"),
        (["--root", str(CHECKOUT), "--tasks", "99"], "--tasks"),
        (["--root", str(CHECKOUT), "--precision", "fp8"], "--precision"),
        (["report", "nowhere"], "not a suite"),
    ],
)
def test_wrong_usage_is_named(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench", "kernelbench", *arguments])
    assert done.exit_code != 0
    assert said in str(done.exception)


def test_key_of_a_task_is_how_people_write_it() -> None:
    assert str(TaskKey(2, 9)) == "L2/9"


def test_the_coverage_in_the_documentation_is_the_one_on_record() -> None:
    record = json.loads((ROOT / "benchmarks/results/kernelbench/coverage.json").read_text())
    page = (ROOT / "docs" / "kernelbench.md").read_text(encoding="utf-8")
    for level in (1, 2, 3):
        extents = [t["extent"] for t in record["tasks"] if t["key"]["level"] == level]
        own, full = sum(e != "refused" for e in extents), extents.count("full")
        assert f"| {level} | {own} of {len(extents)} | {full} |" in page
