"""Stage 1: the roofline class of a kernel by two independent methods, and its headroom.

Analytic (the problem's FLOPs and bytes against the device's ceilings) and measured (counters). If
they agree, confidence is high; on a conflict between compute and memory the analytic one is
trusted (paper, section 3), except for one of several kernels, which does not do all of it.
Latency, occupancy and launch refine either: they say why no limit is reached.
"""

from __future__ import annotations

from dataclasses import replace

from kernelpro.diagnosis.analytic import Floor, floor
from kernelpro.diagnosis.base import Stage1, ToolInput
from kernelpro.diagnosis.evidence import call_us
from kernelpro.diagnosis.measured import Measured, measured_cpu, measured_cuda
from kernelpro.diagnosis.waste import useful_share
from kernelpro.schema.finding import RooflineClass
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import KernelProfile, Profile
from kernelpro.text import format_us

NEAR_ROOFLINE = 0.90
"""Share of the attainable rate from which a kernel is done (issue 4: 90-95 %; chosen)."""
NEAR_BY_COUNTERS = 0.85
"""The same for a report without its problem, where the limit is a counter's (measured: a plain
float4 copy on the H200 shows 85-93 % of nominal DRAM bandwidth in ncu)."""

FAR = 64.0
"""Headroom from which its value says nothing but that the kernel does little work of the kinds that
have a limit (see ``gain.MOST``)."""
IMPOSSIBLE = 0.85
"""A kernel below this share of its floor shows that the floor is wrong, not that it is fast
(chosen: beyond the scatter of timings and of the calibration)."""

AGREE, REFINED, ONE_METHOD, CONFLICT = 0.95, 0.75, 0.6, 0.5
"""Confidence by how the two methods relate (chosen)."""

_REFINING: tuple[RooflineClass, ...] = ("latency", "occupancy", "launch")

NOT_CLASSIFIED = Stage1(
    roofline_class="unknown", confidence=0.0, headroom=None, explanation="not classified yet"
)


def classify(given: ToolInput, outcome: Outcome | None = None) -> Stage1:
    """The class, confidence, headroom and floor of ``given.kernel`` (its ``stage1`` is ignored)."""
    bound, distrust = _credible(given, _floor(given, outcome))
    if _is_cpu(given.profile):
        launch_us = None if given.peaks is None else given.peaks.launch_us
        seen = measured_cpu(given, bound, launch_us)
    else:
        seen = measured_cuda(given)
    analytic: RooflineClass = "unknown" if bound is None else bound.roofline_class
    whole = _does_all(given)
    chosen, confidence = _combine(analytic, seen.roofline_class, whole=whole)
    headroom, near, source = _headroom(given, bound, seen)
    return Stage1(
        roofline_class=chosen,
        confidence=confidence,
        headroom=headroom,
        explanation=_explain(chosen, analytic, seen, bound, headroom, near, source, whole)
        + distrust,
        floor_us=None if bound is None else bound.us,
        analytic=analytic,
        measured=seen.roofline_class,
        near_roofline=near,
    )


def with_stage1(given: ToolInput, outcome: Outcome | None = None) -> ToolInput:
    """``given`` with its stage 1 filled in."""
    return replace(given, stage1=classify(given, outcome))


def _is_cpu(profile: Profile) -> bool:
    return profile.device.startswith("cpu")


def _floor(given: ToolInput, outcome: Outcome | None) -> Floor | None:
    if given.graph is None or given.peaks is None:
        return None
    precision = "strict"
    if outcome is not None and outcome.correctness is not None:
        precision = outcome.correctness.precision_class
    return floor(given.graph, given.peaks, given.device, precision)


def _credible(given: ToolInput, bound: Floor | None) -> tuple[Floor | None, str]:
    """The floor, unless the kernel beats it: then the ceilings were measured too low."""
    spent = None if bound is None else _time_against_floor(given)
    if bound is None or spent is None or spent >= IMPOSSIBLE * bound.us:
        return bound, ""
    return None, (
        f" The measured ceilings are not credible: {format_us(spent)} is less than the "
        f"{format_us(bound.us)} they allow, so they were not used. Calibrate again on an idle "
        "machine."
    )


def _does_all(given: ToolInput) -> bool:
    """False for one of several kernels: the problem's arithmetic says nothing about a part."""
    kernels = given.profile.kernels
    return _is_cpu(given.profile) or sum(kernel.origin != "copy" for kernel in kernels) <= 1


def _combine(
    analytic: RooflineClass, seen: RooflineClass, *, whole: bool
) -> tuple[RooflineClass, float]:
    if analytic == "unknown" or seen == "unknown":
        known = seen if analytic == "unknown" else analytic
        return known, 0.0 if known == "unknown" else ONE_METHOD
    if analytic == seen:
        return analytic, AGREE
    if seen in _REFINING:
        return seen, REFINED
    if "mixed" in (analytic, seen):
        return (seen if analytic == "mixed" else analytic), REFINED
    return (analytic, CONFLICT) if whole else (seen, ONE_METHOD)


def _headroom(
    given: ToolInput, bound: Floor | None, seen: Measured
) -> tuple[float | None, bool, str]:
    """(time over attainable time, near the roofline, where the figure comes from)."""
    spent = None if bound is None else _time_against_floor(given)
    if bound is not None and spent is not None and bound.us > 0:
        headroom = max(spent / bound.us, 1.0)
        return headroom, headroom <= 1.0 / NEAR_ROOFLINE, "the problem's bytes and FLOPs"
    if seen.utilisation is None or seen.utilisation <= 0:
        return None, False, ""
    useful = useful_share(given)
    share = seen.utilisation * useful
    near = share >= NEAR_BY_COUNTERS
    return max(1.0 / share, 1.0), near, "the counters alone"


def _time_against_floor(given: ToolInput) -> float | None:
    """Time that does the whole problem's work: the call on a CPU, all kernels on a GPU."""
    if _is_cpu(given.profile):
        return call_us(given)
    own = [k for k in given.profile.kernels if k.origin not in ("framework", "copy")]
    times = [total_us(k) for k in own]
    known = [t for t in times if t is not None]
    return sum(known) if known and len(known) == len(times) else None


def total_us(kernel: KernelProfile) -> float | None:
    """Time of all launches of ``kernel`` in the profiled call."""
    return None if kernel.duration_us is None else kernel.duration_us * max(kernel.launches, 1)


_SENTENCE: dict[RooflineClass, str] = {
    "compute": "Compute-bound: arithmetic sets the limit",
    "memory": "Memory-bound: data movement sets the limit",
    "latency": "Latency-bound: no resource is busy, work waits on work",
    "occupancy": "Occupancy-limited: too few threads in flight to keep any resource busy",
    "launch": "Launch-bound: starting the work costs more than the work",
    "mixed": "Balanced: compute and memory are both near their limits",
    "unknown": "The class could not be determined",
}


def _explain(
    chosen: RooflineClass,
    analytic: RooflineClass,
    seen: Measured,
    bound: Floor | None,
    headroom: float | None,
    near: bool,
    source: str,
    whole: bool,
) -> str:
    parts = [f"{_SENTENCE[chosen]} ({seen.text})."]
    if bound is not None:
        parts.append(
            f"The problem itself is {analytic}-bound: {format_us(bound.memory_us)} of data "
            f"movement, {format_us(bound.compute_us)} of arithmetic at the attainable rates."
        )
    if "unknown" not in (analytic, seen.roofline_class) and analytic != seen.roofline_class:
        if seen.roofline_class in _REFINING:
            parts.append("The counters show that this limit is not what holds it back now.")
        elif not whole:
            parts.append("It does a part of that work, so its counters are believed.")
        elif "mixed" not in (analytic, seen.roofline_class):
            parts.append(
                f"The counters say {seen.roofline_class}; the problem's own arithmetic is trusted,"
                " so the difference is work or traffic that the problem does not need."
            )
    if headroom is not None:
        if near:
            parts.append(
                f"It runs at {1 / headroom:.0%} of what is attainable (by {source}): there is"
                " nothing worth changing in the kernel itself."
            )
        elif headroom > FAR:
            parts.append(f"It is more than {FAR:.0f}x from every limit known (by {source}).")
        else:
            parts.append(f"At most {headroom:.2f}x is left to gain (by {source}).")
    return " ".join(parts)
