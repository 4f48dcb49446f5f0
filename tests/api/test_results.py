"""What a run leaves beside its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.api.optimize import write_results
from kernelpro.errors import MachineError
from kernelpro.schema.result import RunResult


def kept_eager(folder: Path) -> RunResult:
    return RunResult(
        run_id="r", folder=str(folder), problem="p", device="cpu", stop_reason="exhausted",
        detail="", best=None, outcome=None, keep_eager=True,
    )  # fmt: skip


def test_a_file_of_an_earlier_sitting_goes_where_eager_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(write_results.__globals__, "report", lambda folder, format: None)
    (tmp_path / "best.py").write_text("class ModelNew: ...")
    write_results(kept_eager(tmp_path))
    assert not (tmp_path / "best.py").exists()


def test_a_folder_that_cannot_be_written_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(write_results.__globals__, "report", lambda folder, format: None)
    (tmp_path / "best.py").mkdir()
    with pytest.raises(MachineError, match="Nothing is lost"):
        write_results(kept_eager(tmp_path))
