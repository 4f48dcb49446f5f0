"""Where the baselines and every candidate stand under the device's roofline.

The intensity is the problem's: operator FLOPs over the compulsory bytes of its graph, so all
versions share one abscissa and a faster version stands higher on it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kernelpro.schema.graph import Graph
from kernelpro.schema.hardware import Peaks
from kernelpro.schema.problem import Problem
from kernelpro.views.run import Run
from kernelpro.views.run_summary import compile_us


class RooflinePoint(NamedTuple):
    """One version of the computation."""

    name: str
    """``eager``, ``compile`` or a node id."""
    kind: Literal["baseline", "candidate", "path", "best"]
    flops_per_s: float
    share: float
    """Attained over attainable rate; may pass 1 where data stays in cache between calls."""
    latency_us: float


class RooflineView(NamedTuple):
    """Ceilings and points. Rates in FLOP/s, bandwidths in bytes/s, intensity in FLOP/byte."""

    intensity: float
    attainable: float
    """The lower of the compute ceiling and bandwidth times intensity."""
    floor_us: float
    """Time at the attainable rate."""
    peak_flops: float
    peak_name: str
    bandwidth: float
    """For as much data as the problem has."""
    cache_bandwidth: float | None
    ridge: float
    """Intensity at which the two ceilings meet."""
    bound: Literal["memory", "compute"]
    source: str
    """Whether the ceilings were measured, taken from a specification, or estimated."""
    points: tuple[RooflinePoint, ...]


def roofline_view(run: Run) -> RooflineView | str:
    """The roofline of ``run``, or why there is none."""
    if run.started is None or not run.started.graphs:
        return "The problem's graph could not be exported, so its work is not known."
    graph, peaks = run.started.graphs[0], run.started.peaks
    if graph.flops <= 0 or graph.compulsory_bytes <= 0:
        return "The problem does no floating-point arithmetic that could be placed on a roofline."
    name = arithmetic_class(run.started.problem, graph, peaks)
    if name is None or peaks.copy_gb_s <= 0:
        return f"No ceiling is known for this device ({run.started.device.name})."
    peak, bandwidth = peaks.flops[name], peaks.copy_gb_s_at(graph.compulsory_bytes) * 1e9
    intensity = graph.flops / graph.compulsory_bytes
    attainable = min(peak, bandwidth * intensity)
    return RooflineView(
        intensity=intensity, attainable=attainable, floor_us=graph.flops / attainable * 1e6,
        peak_flops=peak, peak_name=name, bandwidth=bandwidth,
        cache_bandwidth=peaks.cache_gb_s * 1e9 if peaks.cache_gb_s else None,
        ridge=peak / bandwidth, bound="memory" if bandwidth * intensity < peak else "compute",
        source=peaks.source, points=_points(run, graph.flops, attainable),
    )  # fmt: skip


def arithmetic_class(problem: Problem, graph: Graph, peaks: Peaks) -> str | None:
    """The key of ``peaks.flops`` that bounds the problem: its dtype, widened by its precision."""
    dtypes = [spec.dtype for node in graph.nodes for spec in node.outputs]
    dtype = next((d for d in reversed(dtypes) if d in peaks.flops), "float32")
    wider = {"strict": None, "tf32": "tf32", "half": "float16"}[problem.precision]
    if dtype == "float32" and graph.has_matmul and wider in peaks.flops:
        return wider
    return dtype if dtype in peaks.flops else None


def _points(run: Run, flops: float, attainable: float) -> tuple[RooflinePoint, ...]:
    points: list[RooflinePoint] = []
    best, path = run.best_id, set(run.path(run.best_id))
    outcome = run.outcome(best) if best else None
    for name, latency in (outcome.baselines if outcome else {}).items():
        own = compile_us(outcome) if name == "compile" else None
        points.append(_point(name, "baseline", own or latency.median_us, flops, attainable))
    for node_id, facts in run.facts.items():
        latency_us = run.latency_us(node_id)
        if latency_us is None or (facts.duplicate_of is not None and node_id != best):
            continue
        kind: Literal["best", "path", "candidate"] = (
            "best" if node_id == best else "path" if node_id in path else "candidate"
        )
        points.append(_point(node_id, kind, latency_us, flops, attainable))
    return tuple(points)


def _point(
    name: str, kind: Literal["baseline", "candidate", "path", "best"], latency_us: float,
    flops: float, attainable: float,
) -> RooflinePoint:  # fmt: skip
    rate = flops / (latency_us * 1e-6)
    return RooflinePoint(name, kind, rate, rate / attainable, latency_us)
