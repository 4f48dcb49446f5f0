"""A suite folder keeps what it was begun with, goes on where it was, and says what is damaged."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.bench.kernelbench_samples import CHECKOUT, HALF, STRICT, kept, result, versus

from kernelpro.api.kernelbench import checkout_version, export_kernelbench, report_kernelbench
from kernelpro.bench.kernelbench_aggregate import TaskVerdict
from kernelpro.bench.kernelbench_lint import LintEntry, LintList, read_lint, write_lint
from kernelpro.bench.kernelbench_report import SuiteReport, markdown, suite_report, summary_lines
from kernelpro.bench.kernelbench_suite import Suite
from kernelpro.bench.kernelbench_tasks import TaskKey, find_tasks
from kernelpro.errors import UserError
from kernelpro.schema.codec import loads


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite.open_or_create(tmp_path / "suite", STRICT)


def test_results_come_back_as_they_were(suite: Suite) -> None:
    given = [result(2, 1, 2.0), result(1, 10, 1.5), kept(1, 9), result(3, 1)]
    for each in given:
        suite.save(each)
    assert list(Suite.open(suite.folder).results()) == [given[2], given[1], given[0], given[3]]
    assert suite.result(TaskKey(1, 1)) is None


def test_a_suite_never_mixes_two_settings(suite: Suite) -> None:
    Suite.open_or_create(suite.folder, STRICT)
    other = dataclasses.replace(STRICT, evaluations=9)
    with pytest.raises(UserError, match=r"evaluations 3 \(now 9\)"):
        Suite.open_or_create(suite.folder, other)


def test_what_is_pending(suite: Suite) -> None:
    tasks = find_tasks(CHECKOUT)
    assert suite.pending(tasks) == tasks
    suite.save(result(1, 1, 2.0))
    suite.save(kept(1, 2))
    suite.save(result(2, 1, state="started", fault="", run="r1"))
    suite.save(result(3, 1))  # failed: not again, unless asked for
    assert [str(t.key) for t in suite.pending(tasks)] == ["L2/1", "L3/2", "L3/3"]
    again = suite.pending(tasks, retry_failed=True)
    assert [str(t.key) for t in again] == ["L2/1", "L3/1", "L3/2", "L3/3"]


def test_damage_is_named(suite: Suite, tmp_path: Path) -> None:
    suite.save(result(1, 1, 2.0))
    path = suite.tasks / "level1_001.json"
    path.write_text("{}")
    with pytest.raises(UserError, match="level1_001"):
        list(suite.results())
    with pytest.raises(UserError, match="not a suite"):
        Suite.open(tmp_path)


def test_a_folder_inside_another_repository_has_no_version(tmp_path: Path) -> None:
    assert checkout_version(CHECKOUT) == ""
    assert checkout_version(tmp_path) == ""


# ---- reports ----------------------------------------------------------------------------------


def test_report_files_and_exports(suite: Suite) -> None:
    suite.save(result(1, 1, 4.0, run="run-1", title="fused", left_to_torch="mm"))
    suite.save(kept(1, 2, detail="no candidate beat eager"))
    suite.save(result(1, 3, state="started", fault="", run="run-3"))
    (suite.runs / "run-1").mkdir()
    (suite.runs / "run-1" / "report.html").write_text("x")
    report = report_kernelbench(suite.folder)
    assert loads(SuiteReport, (suite.folder / "report.json").read_text()) == report
    page = (suite.folder / "report.md").read_text()
    assert "[L1/1 Task](runs/run-1/report.html)" in page
    assert "| L1/2 Task | eager kept | 1 |" in page
    assert "Begun and not finished: L1/3" in page
    assert report.unfinished == ("L1/3",)
    (path,) = export_kernelbench(suite.folder, "eval-results")
    assert set(json.loads(path.read_text())) == {"1", "2"}
    (path,) = export_kernelbench(suite.folder, "flashinfer-trace")
    assert len(path.read_text().splitlines()) == 1


def test_paper_and_peers_stand_beside_with_what_differs(suite: Suite) -> None:
    suite.save(result(1, 1, 4.0))
    page = markdown(suite_report(suite))
    assert "KernelPro paper" in page and "A100" in page
    assert "| this suite, strict | 4 (n = 1) | - | - |" in page


def test_half_precision_fills_two_columns(tmp_path: Path) -> None:
    suite = Suite.open_or_create(tmp_path, HALF)
    suite.save(result(1, 1, 1.5, versus=versus(3.0)))
    report = suite_report(suite)
    assert report.rows[0].speedups == {"paper_like": 3.0, "matched": 1.5}
    lines = "\n".join(summary_lines(report))
    assert "L1 paper-like: geomean 3x" in lines and "L1 matched: geomean 1.5x" in lines


def test_text_of_others_cannot_leave_its_cell(suite: Suite) -> None:
    suite.save(result(1, 1, 2.0, title="a | b\n# head <script>", detail="| x |"))
    (row,) = [r for r in markdown(suite_report(suite)).splitlines() if r.startswith("| L1/1")]
    assert row.count(" | ") == markdown(suite_report(suite)).split("| task |")[1].split("\n")[
        0
    ].count(" | ") + 1  # fmt: skip
    assert "<script>" not in row


def test_faults_and_a_busy_machine_are_said(suite: Suite) -> None:
    suite.save(result(1, 1))
    suite.save(result(1, 2, fault="machine"))
    noisy = result(1, 3, 2.0)
    assert noisy.outcome is not None
    evidence = {"warnings": ["the machine was busy, measure again"]}
    suite.save(
        dataclasses.replace(noisy, outcome=dataclasses.replace(noisy.outcome, evidence=evidence))
    )
    said = "\n".join(suite_report(suite).warnings)
    assert "1 (crash)" in said and "1 (machine)" in said and "busy while 1" in said


# ---- lint lists -------------------------------------------------------------------------------


def test_a_lint_list_is_kept_in_order_and_decides_which_tasks_count(
    suite: Suite, tmp_path: Path
) -> None:
    path = tmp_path / "lint.json"
    entries = {
        "L1/10": LintEntry(name="10_Task", problem_hash="h", controls_passing={"default": []}),
        "L1/9": LintEntry(name="9_Task", problem_hash="h", labels=("zero",)),
        "L2/1": LintEntry(name="1_Task", problem_hash="h", error="out of memory"),
    }
    write_lint(path, LintList(checkout="c", device="d", torch="t", made_at="now", tasks=entries))
    listed = read_lint(path)
    assert list(listed.tasks) == ["L1/9", "L1/10", "L2/1"]
    assert listed.counts() == {"zero": 1}
    assert listed.clean() == [TaskKey(1, 10)]
    # A task without a verdict is not called clean, and not replaced.
    assert TaskKey(2, 1) not in listed.verdicts()
    assert listed.verdicts()[TaskKey(1, 9)] == TaskVerdict(labels=("zero",), controls_passing={})
    for each in (result(1, 9, 8.0), result(1, 10, 2.0)):
        suite.save(each)
    report = report_kernelbench(suite.folder, lint=path)
    clean = next(a for a in report.aggregates if a.tasks == "lint_clean")
    assert clean.uncapped is not None and clean.uncapped.geomean == pytest.approx(2.0)
    assert "on d" in (suite.folder / "report.md").read_text()


def test_a_file_that_is_no_lint_list(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(UserError, match="not a lint list"):
        read_lint(tmp_path / "x.json")
    with pytest.raises(UserError, match="cannot be read"):
        read_lint(tmp_path / "y.json")
