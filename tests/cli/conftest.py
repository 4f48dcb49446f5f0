"""A folder of stored runs, and the command line run in this process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelpro.cli import main as cli
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.sample_run import sample_events


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """stderr as one line: a long path moves the breaks."""
        return " ".join(self.err.split())


@pytest.fixture(scope="session")
def stored_runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("stored")
    for name, seed in (("20260115-093000-rms_norm", 0), ("20260116-101500-other", 5)):
        with RunStore.create(root / name) as store:
            for event in sample_events(nodes=20, seed=seed, hostile=seed == 5):
                store.append(event)
    return root


@pytest.fixture
def runs_root(stored_runs, tmp_path, monkeypatch) -> Path:
    root = tmp_path / "runs"
    shutil.copytree(stored_runs, root)
    monkeypatch.setenv("KERNELPRO_RUNS", str(root))
    return root


@pytest.fixture
def run(capfd, monkeypatch):
    def call(*arguments: str | Path) -> Ran:
        monkeypatch.setattr("sys.argv", ["kernelpro", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return call
