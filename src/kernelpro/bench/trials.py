"""Runs one trial of an ablation: for real, or on a simulated landscape."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

from kernelpro.bench.ablation import RunTrial, Trial
from kernelpro.bench.simulation import Calibration, simulate
from kernelpro.loop.assemble import Assemble, Prepare, assemble, prepare
from kernelpro.loop.run import start_run
from kernelpro.loop.seeds import derived_seed
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import Event, NodeFinished
from kernelpro.schema.problem import Problem
from kernelpro.store.sqlite import RunStore


def simulated_trial(calibration: Calibration | None = None) -> RunTrial:
    """Trials on simulated landscapes. The problem's name picks the landscape (``landscape-7``)."""

    def run(arm: str, config: RunConfig, problem: str, seed: int) -> Trial:
        landscape = int(problem.rpartition("-")[2])
        config = dataclasses.replace(config, seed=derived_seed(seed, problem))
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
        if result.stop_reason == "interrupted":  # half a run is no trial
            raise KeyboardInterrupt
        return trial_of_run(Path(result.folder), arm, problem, seed, result.speedup)

    return run


def trial_of_run(folder: Path, arm: str, problem: str, seed: int, final: float | None) -> Trial:
    """What a recorded run says; ``final`` None = eager was kept."""
    nodes, best, best_so_far = evaluated(folder), 1.0, []
    for node in nodes:
        best = max(best, node.tell.speedup or 1.0)
        best_so_far.append(best)
    failures, repeated = failures_of(nodes)
    return Trial(
        arm=arm, problem=problem, seed=seed, best_so_far=tuple(best_so_far), final=final or 1.0,
        run=folder.name, failures=failures, repeated_failures=repeated,
    )  # fmt: skip


def evaluated(folder: Path) -> list[NodeFinished]:
    """The nodes of a recorded run that were charged to its budget, in order."""
    with RunStore.open(folder) as store:
        events: Iterable[Event] = (r.event for r in store.recorded(profiles=False))
        nodes = [e for e in events if isinstance(e, NodeFinished)]
    return [n for n in nodes if n.candidate is not None and not n.duplicate_of]


def failures_of(nodes: Iterable[NodeFinished]) -> tuple[int, int]:
    """Failed nodes, and how many of them repeat a move that had failed on the same conditions."""
    tried: set[tuple[str, str]] = set()
    failures = repeated = 0
    for node in nodes:
        if node.tell.speedup is not None or node.candidate is None:
            continue
        failures += 1
        proposal = node.candidate.proposal
        if proposal.move is not None:
            repeated += (proposal.move, proposal.conditions) in tried
            tried.add((proposal.move, proposal.conditions))
    return failures, repeated
