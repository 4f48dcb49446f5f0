"""A killed and resumed run ends like the uninterrupted one with the same seed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


# Four runs are one of each search.
@pytest.mark.parametrize(
    ("runs", "parallel"),
    [(4, 1), (4, 3), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((20, 1), (6, 3)))],
)
def test_kill_9_at_random_points_changes_nothing(tmp_path: Path, runs: int, parallel: int) -> None:
    command = [sys.executable, "-m", "tests.loop.crash_driver", str(tmp_path), str(runs)]
    done = subprocess.run(
        [*command, str(parallel)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["different"] == []
    assert report["kills"] >= runs, "most children must have been killed at work"
