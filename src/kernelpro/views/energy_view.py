"""Speed against energy: every attempt whose energy was measured, and those no other beats."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.search.reward import pareto_front
from kernelpro.views.run import Run


class EnergyPoint(NamedTuple):
    """One accepted attempt, as the search measured it."""

    node_id: str
    speedup: float
    energy_j: float
    """Of one call."""
    on_front: bool
    """No other attempt is both faster and more frugal."""
    is_best: bool


class EnergyView(NamedTuple):
    """Points in order of evaluation, and the baseline's energy where it was measured."""

    points: tuple[EnergyPoint, ...]
    baseline_j: float | None


def energy_view(run: Run) -> EnergyView | str:
    """The trade-off, or why there is none."""
    tells = [facts.tell for facts in run.facts.values() if facts.duplicate_of is None]
    measured = [t for t in tells if t.energy_j is not None and t.speedup is not None]
    if not measured:
        return _none_measured(run)
    front = {tell.node_id for tell in pareto_front(measured)}
    best = run.best_id
    baselines = [t.baseline_energy_j for t in measured if t.baseline_energy_j is not None]
    return EnergyView(
        points=tuple(
            EnergyPoint(t.node_id or "", t.speedup or 0.0, t.energy_j or 0.0, t.node_id in front,
                        t.node_id == best)
            for t in measured
        ),
        baseline_j=baselines[-1] if baselines else None,
    )  # fmt: skip


def _none_measured(run: Run) -> str:
    where = f" on {run.started.device.name}" if run.started else ""
    said = f"No attempt's energy was measured in this run{where}"
    if run.started and not run.started.config.evaluation.energy:
        return f"{said}: it was not asked for (an energy objective does, e.g. --objective edp)."
    outcome = run.outcome(run.best_id) if run.best_id else None
    reason = outcome.evidence.get("energy_missing") if outcome else None
    return f"{said}: {reason}." if reason else f"{said}."
