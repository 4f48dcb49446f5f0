"""Every attempt in order, with the best speed-up so far."""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.schema.outcome import Status
from kernelpro.views.run import Run


class ProgressPoint(NamedTuple):
    """One evaluation."""

    order: int
    """1 = first."""
    node_id: str
    parent_id: str | None
    elapsed_s: float
    """Sum of the nodes' wall time up to and including this one."""
    status: Status | None
    speedup: float | None
    best: float | None
    """Best speed-up up to here; None before the first accepted candidate."""
    improved: bool
    on_best_path: bool


def progress_view(run: Run) -> tuple[ProgressPoint, ...]:
    """The points of the best-so-far curve, as measured during the search."""
    points: list[ProgressPoint] = []
    best: float | None = None
    elapsed = 0.0
    path = set(run.path(run.best_id))
    for order, (node_id, facts) in enumerate(run.facts.items(), start=1):
        elapsed += facts.seconds
        speedup = facts.speedup
        improved = speedup is not None and (best is None or speedup > best)
        best = speedup if improved else best
        points.append(
            ProgressPoint(
                order=order, node_id=node_id, parent_id=run.parent_of(node_id), elapsed_s=elapsed,
                status=facts.status, speedup=speedup,
                best=best, improved=improved, on_best_path=node_id in path,
            )
        )  # fmt: skip
    return tuple(points)
