"""Starts real subjects, and makes sure that none outlives its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isolation.candidates import QUICK, Start
from kernelpro.isolation.base import SubjectJob
from kernelpro.isolation.worker import WorkerSubject


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    subjects: list[WorkerSubject] = []

    def begin(source: str, **changes: Any) -> WorkerSubject:
        fields: dict[str, Any] = {
            "entry": "ModelNew", "device": "cpu", "init_args": (), "construction_seed": 7,
            "build_root": tmp_path / f"build{len(subjects)}", "threads": 1, "limits": QUICK,
        }  # fmt: skip
        subject = WorkerSubject(SubjectJob(source=source, **{**fields, **changes}))
        subjects.append(subject)
        return subject

    yield begin
    for subject in subjects:
        subject.close()
