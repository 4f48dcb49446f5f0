"""The planted faults as recorded on an H200, replayed: what is named today must stay named.

The figure for new kernels is the set-aside one in benchmarks/results/faults-h200.json."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "benchmarks" / "faults"


@pytest.fixture(scope="module")
def scored(request) -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        score, recordings = importlib.import_module("score"), importlib.import_module("recordings")
    finally:
        sys.path.remove(str(FOLDER))
    recorded = recordings.Recordings(score.RECORDINGS)

    def rows(sass: bool, page: str = "full_raw") -> list[dict[str, Any]]:
        cases = recordings.cases_of("all")
        found = (score.score(recorded, case, page, sass) for case in cases)
        return [row for row in found if row is not None]

    return rows


@pytest.mark.parametrize(("sass", "missed"), [(True, set()), (False, {"embedding_unsorted"})])
def test_planted_faults_are_named_and_clean_kernels_are_left_alone(scored, sass, missed):
    rows = scored(sass)
    planted = [row for row in rows if row["fault"]]
    assert len(planted) == 47 and len(rows) == 53
    assert {row["case"] for row in planted if not row["top3"]} == missed
    assert {row["case"] for row in planted if not row["top1"]} <= {"embedding_unsorted"}
    assert [row["case"] for row in rows if row["alarms"]] == []


def test_a_details_page_alone_raises_no_false_alarm(scored):
    rows = scored(False, "full_details")
    assert [row["case"] for row in rows if row["alarms"]] == []
    assert sum(row["top1"] for row in rows if row["fault"]) >= 30


def test_every_case_of_the_suite_has_a_header_and_a_half():
    sys.path.insert(0, str(FOLDER))
    try:
        cases = importlib.import_module("cases")
    finally:
        sys.path.remove(str(FOLDER))
    halves = cases.split()
    known = {case.id for case in cases.all_cases()}
    assert known == set(halves) and len(known) == 94
    assert {case.fault for case in cases.cuda_cases()} >= {None, "wgmma_usage", "fp64_usage"}
