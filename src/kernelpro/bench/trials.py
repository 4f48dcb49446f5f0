"""Runs one trial of an ablation: for real, or on a simulated landscape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from kernelpro.bench.ablation import RunTrial, Trial
from kernelpro.bench.simulation import Calibration, simulate
from kernelpro.loop.assemble import Assemble, Prepare, assemble, prepare
from kernelpro.loop.run import start_run
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import Event, NodeFinished
from kernelpro.schema.problem import Problem
from kernelpro.store.sqlite import RunStore


def simulated_trial(calibration: Calibration | None = None) -> RunTrial:
    """Trials on simulated landscapes. The problem's name picks the landscape (``landscape-7``)."""

    def run(arm: str, config: RunConfig, problem: str, seed: int) -> Trial:
        landscape = int(problem.rpartition("-")[2])
        trace = simulate(config, landscape, calibration)
        return Trial(
            arm=arm, problem=problem, seed=seed, best_so_far=tuple(trace.best_so_far),
            final=trace.final, failures=trace.failures,
            repeated_failures=trace.repeated_failures, simulated=True,
        )  # fmt: skip

    return run


def real_trial(
    load: Callable[[str], Problem], *, runs_root: Path, cache_root: Path,
    prepare: Prepare = prepare, assemble: Assemble = assemble,
) -> RunTrial:  # fmt: skip
    """Trials by the real loop; every one leaves its run folder under ``runs_root``."""

    def run(arm: str, config: RunConfig, problem: str, seed: int) -> Trial:
        result = start_run(
            load(problem), config, runs_root=runs_root, cache_root=cache_root, prepare=prepare,
            assemble=assemble,
        )  # fmt: skip
        return trial_of_run(Path(result.folder), arm, problem, seed, result.speedup)

    return run


def trial_of_run(folder: Path, arm: str, problem: str, seed: int, final: float | None) -> Trial:
    """What a recorded run says; ``final`` None = eager was kept."""
    with RunStore.open(folder) as store:
        nodes = [e for e in _events(store) if e.candidate is not None and not e.duplicate_of]
    best, best_so_far = 1.0, []
    tried: set[tuple[str, str]] = set()
    failures = repeated = 0
    for node in nodes:
        best = max(best, node.tell.speedup or 1.0)
        best_so_far.append(best)
        if node.tell.speedup is None and node.candidate is not None:
            failures += 1
            proposal = node.candidate.proposal
            if proposal.move is not None:
                repeated += (proposal.move, proposal.conditions) in tried
                tried.add((proposal.move, proposal.conditions))
    return Trial(
        arm=arm, problem=problem, seed=seed, best_so_far=tuple(best_so_far), final=final or 1.0,
        failures=failures, repeated_failures=repeated, run=folder.name,
    )  # fmt: skip


def _events(store: RunStore) -> Iterable[NodeFinished]:
    events: Iterable[Event] = (r.event for r in store.recorded(profiles=False))
    return [e for e in events if isinstance(e, NodeFinished)]
