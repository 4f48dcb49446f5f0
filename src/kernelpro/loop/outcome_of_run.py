"""Sums a run up from its state: the same result live, after a resume, and years later."""

from __future__ import annotations

from pathlib import Path

from kernelpro.loop.finalists import Winner, beats_eager, winner
from kernelpro.loop.state import RunState
from kernelpro.schema.event import Stopped
from kernelpro.schema.result import Finalist, RunResult
from kernelpro.search.reward import pareto_front


def result_of(state: RunState, folder: Path, stopped: Stopped) -> RunResult:
    """The result as of ``stopped``."""
    won = _winner(state)
    convincing = won is not None and beats_eager(won.outcome)
    candidate = state.archive.attempt(won.node_id).candidate if won and convincing else None
    return RunResult(
        run_id=state.started.run_id,
        folder=str(folder),
        problem=state.started.problem.name,
        device=state.started.device.id,
        stop_reason=stopped.reason,
        detail=stopped.detail,
        best=candidate,
        outcome=won.outcome if won and convincing else None,
        keep_eager=not convincing,
        finalists=_finalists(state),
        pareto=tuple(tell.node_id or "" for tell in pareto_front(state.accepted)),
        labels=state.started.labels,
        evaluations=state.spending.evaluations,
        nodes=len(state.archive),
        duplicates=state.spending.duplicates,
        statuses=dict(sorted(state.statuses.items())),
        usage=state.spending.usage,
        elapsed_s=stopped.elapsed_s,
    )


def _winner(state: RunState) -> Winner | None:
    """The best finalist; the search's own best where nothing was measured again."""
    if state.remeasured:
        return winner(state.remeasured, state.config.objective, state.config.max_slowdown)
    best = state.best()
    return None if best is None else Winner(best.candidate.id, best.outcome)


def _finalists(state: RunState) -> tuple[Finalist, ...]:
    finalists = []
    for node_id, outcome in state.remeasured.items():
        speedup = state.archive.attempt(node_id).outcome.speedup
        assert speedup is not None
        finalists.append(Finalist(node_id=node_id, search_speedup=speedup, outcome=outcome))
    return tuple(finalists)
