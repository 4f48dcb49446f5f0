"""The views of a run as one JSON object, for scripts."""

from __future__ import annotations

from typing import Any

from kernelpro.schema.codec import to_jsonable
from kernelpro.views.candidate_view import CandidateView, candidate_view
from kernelpro.views.cost_view import cost_view
from kernelpro.views.progress_view import progress_view
from kernelpro.views.roofline_view import RooflineView, roofline_view
from kernelpro.views.run import Run
from kernelpro.views.run_summary import run_summary
from kernelpro.views.tools_view import tools_view


def json_report(run: Run) -> dict[str, Any]:
    """Summary, attempts, winner, roofline, tools, cost and environment of ``run``."""
    summary, started, roofline = run_summary(run), run.started, roofline_view(run)
    best = summary.best_id
    return {
        "summary": plain_json(summary),
        "best": _best(run, best) if best else None,
        "path": list(run.path(best)),
        "attempts": [_attempt(candidate_view(run, node_id)) for node_id in run.nodes],
        "progress": plain_json(progress_view(run)),
        "roofline": plain_json(roofline) if isinstance(roofline, RooflineView) else None,
        "tools": plain_json(tools_view(run)),
        "cost": plain_json(cost_view(run)),
        "problem": to_jsonable(started.problem) if started else None,
        "config": to_jsonable(started.config) if started else None,
        "device": to_jsonable(started.device) if started else None,
        "peaks": to_jsonable(started.peaks) if started else None,
        "versions": started.versions if started else {},
    }


def plain_json(value: Any) -> Any:
    """As ``to_jsonable``, with named tuples as objects."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain_json(item) for name, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    return to_jsonable(value)


def _best(run: Run, node_id: str) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "outcome": to_jsonable(run.outcome(node_id)),
        "source": run.source(node_id),
    }


def _attempt(view: CandidateView) -> dict[str, Any]:
    latency = view.outcome.latency if view.outcome else None
    findings = view.diagnosis.ranked() if view.diagnosis else ()
    return {
        "id": view.id,
        "parent_id": view.parent_id,
        "title": view.title,
        "mode": view.mode,
        "writer": view.writer,
        "knobs": to_jsonable(view.knobs),
        "status": to_jsonable(view.status),
        "message": view.outcome.message if view.outcome else None,
        "speedup": view.speedup,
        "gain": view.gain,
        "latency_us": latency.median_us if latency else None,
        "duplicate_of": view.duplicate_of,
        "acted_on": list(view.acted_on),
        "findings": [
            {"tool": f.tool, "severity": f.severity.value, "summary": f.summary} for f in findings
        ],
        "source_hash": view.source_hash,
        "seconds": view.seconds,
    }
