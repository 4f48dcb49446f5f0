"""Task results made by hand, for tables and exporters."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from kernelpro.bench.kernelbench_record import SuiteConfig, TaskResult, Versus
from kernelpro.bench.kernelbench_tasks import TaskKey
from kernelpro.testing.sample_outcome import EAGER_US, latency, success

CHECKOUT = Path(__file__).parent / "kernelbench_checkout"
STRICT = SuiteConfig(precision="strict", device="cpu", model="playbook", evaluations=3)
HALF = SuiteConfig(precision="half", device="cpu", model="playbook", evaluations=3)


def result(level: int, number: int, speedup: float | None = None, **fields: Any) -> TaskResult:
    """A task with an accepted winner of about this speed-up, else without one."""
    if speedup is None:
        return TaskResult(
            key=TaskKey(level, number), name=f"{number}_Task", problem_hash="sha256:0",
            **{"state": "failed", "fault": "crash", **fields},
        )  # fmt: skip
    outcome = success(EAGER_US / speedup, random.Random(number), source_hash=f"sha256:{number:064}")
    given: dict[str, Any] = {
        "state": "improved", "speedup": speedup, "over_compile": speedup / 2, "outcome": outcome,
        "device": "Test device", "controls_passing": {"default": [], "offset": []},
    }  # fmt: skip
    return TaskResult(
        key=TaskKey(level, number), name=f"{number}_Task", problem_hash="sha256:0",
        **{**given, **fields},
    )  # fmt: skip


def kept(level: int, number: int, **fields: Any) -> TaskResult:
    """A task on which eager is handed back."""
    given: dict[str, Any] = {"state": "eager_kept", "fault": "", "speedup": 1.0}
    return TaskResult(
        key=TaskKey(level, number), name=f"{number}_Task", problem_hash="sha256:0",
        **{**given, **fields},
    )  # fmt: skip


def versus(paper_like: float, *, passed: bool | None = True, **fields: Any) -> Versus:
    """A further match with this ratio to strict eager."""
    low, high = paper_like * 0.99, paper_like * 1.01
    sides = {"eager": latency(EAGER_US, random.Random(1))}
    given: dict[str, Any] = {
        "latencies": sides, "paper_like": paper_like, "paper_like_ci95": (low, high),
        "paper_tolerance_passed": passed, "tf32_switch": 1.5,
    }  # fmt: skip
    return Versus(**{**given, **fields})
