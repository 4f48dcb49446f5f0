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


def thinned(points: tuple[ProgressPoint, ...], limit: int) -> tuple[ProgressPoint, ...]:
    """About ``limit`` points at most that draw the same picture.

    Every improvement and the best path are kept; of the rest, the fastest, the slowest and one
    failure of each stretch of the run.
    """
    if len(points) <= limit:
        return points
    kept = {p.order for p in points if p.improved or p.on_best_path}
    stretch = max(1, 3 * len(points) // limit)
    for begin in range(0, len(points), stretch):
        part = points[begin : begin + stretch]
        ranked = sorted((p.speedup or 0.0, p.order) for p in part if p.speedup is not None)
        kept |= {order for _, order in (*ranked[:1], *ranked[-1:])}
        failure = next((p.order for p in part if p.speedup is None), None)
        kept |= {failure} if failure is not None else set()
    return tuple(p for p in points if p.order in kept)
