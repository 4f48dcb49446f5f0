"""Runs the controller in child processes and kills them; see test_crash.

Called as ``python -m tests.loop.crash_driver ROOT RUNS PARALLEL``; prints one JSON object.
Children are forked, so that only this process pays for the imports; they die by SIGKILL, at a
random time or at a chosen step, as a machine that fails would have it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kernelpro.loop.run import create_run, opened, resume_run
from kernelpro.schema.codec import to_jsonable
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Event
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.result import RunResult

from .simulated import PROBLEM, assembler, judged, prepare, story

KILLS_PER_RUN = 3


def config(seed: int, parallel: int) -> RunConfig:
    search = ("mcts", "greedy", "beam", "random")[seed % 4]
    budget = Budget(evaluations=24)
    return RunConfig(device="cpu", seed=seed, search=search, parallel=parallel, budget=budget)


def slow_judge(source: str) -> Outcome:
    time.sleep(0.001)  # evaluations must be long enough to be hit by a random kill
    return judged(source)


def create(root: Path, seed: int, parallel: int) -> Path:
    return create_run(
        PROBLEM, config(seed, parallel), runs_root=root, cache_root=root, prepare=prepare
    )


def go_on(folder: Path, *, die_at: int | None = None) -> RunResult:
    """Work on the run; ``die_at``: kill this process when that many events were heard."""
    heard = 0

    def listen(event: Event) -> None:
        nonlocal heard
        heard += 1
        if heard == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return resume_run(
        folder, cache_root=folder, listeners=(listen,), assemble=assembler(judge=slow_judge),
        same_device=False,
    )  # fmt: skip


def killed(folder: Path, draw: random.Random, duration_s: float) -> bool:
    """Work on the run in a child until it is killed; True if it was, False if it came first."""
    die_at = draw.randint(1, 30) if draw.random() < 0.5 else None
    child = os.fork()
    if child == 0:
        try:
            go_on(folder, die_at=die_at)
        finally:
            os._exit(0)
    if die_at is None:
        time.sleep(draw.uniform(0, duration_s))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def summary(result: RunResult, folder: Path) -> dict[str, Any]:
    """What must be equal."""
    data: dict[str, Any] = to_jsonable(result)
    for field in ("run_id", "folder", "elapsed_s", "usage"):
        del data[field]
    tale = story(folder)
    nodes = [line for line in tale if '"node_finished"' in line]
    asks = [line for line in tale if '"asked"' in line]
    return {"result": data, "nodes": nodes, "asks": asks}


def main() -> None:
    root, runs, parallel = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    kills, different = 0, []
    for seed in range(runs):
        draw = random.Random(f"kill {seed}")
        reference = create(root / "reference", seed, parallel)
        began = time.monotonic()
        expected = summary(go_on(reference), reference)
        duration_s = time.monotonic() - began

        folder = create(root / "killed", seed, parallel)
        kills += sum(killed(folder, draw, duration_s) for _ in range(KILLS_PER_RUN))
        found = summary(go_on(folder), folder)
        if found != expected:
            different.append(seed)
        with opened(folder, cache_root=root, assemble=assembler()) as loop:
            problems = loop.session.store.verify()
        assert problems == [], problems
    print(json.dumps({"runs": runs, "kills": kills, "different": different}))


if __name__ == "__main__":
    main()
