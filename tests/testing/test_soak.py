"""A short soak: what a long one reports, and that it would report a leak."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.hardware import probe
from kernelpro.testing import soak
from kernelpro.testing.traps import turn


def test_growth_and_complaints_fail() -> None:
    report = soak.Report(device="cpu", left_behind={"descriptors": (9, 9)})
    assert not report.failed()
    report.left_behind["children"] = (2, 3)
    assert report.failed()
    assert soak.Report(device="cpu", complaints=["1: zeros: accepted"]).failed()


@pytest.mark.slow
def test_a_mix_leaves_nothing_behind(tmp_path: Path) -> None:
    own, cache = tmp_path / "own", tmp_path / "cache"
    own.mkdir()
    with turn():
        report = soak.soak(probe("cpu"), own, cache, evaluations=25, minutes=3.0, seed=1)
    assert report.evaluations > 3
    assert not report.failed(), (report.complaints, report.left_behind)
