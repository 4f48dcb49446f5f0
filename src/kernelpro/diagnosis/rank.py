"""Orders findings: what to fix first. Expected gain x confidence x track record; causes first.

Pure policy: it changes ranks and, near the roofline, severities; never evidence or advice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from kernelpro.diagnosis import gain
from kernelpro.schema.finding import Finding, RooflineClass, Severity

Weight = Callable[[str], float]
"""Tool id -> weight from the effectiveness ledger; 1.0 = no track record."""

_MEMORY_SYMPTOMS = ("cache_locality", "dram_bandwidth", "warp_stall", "vectorization")

PRECEDES: dict[str, tuple[str, ...]] = {
    # GPU: a cause and the symptoms that vanish with it.
    "register_spill": (
        "local_memory_indexing", "high_register_usage", "occupancy_limiter", "memory_coalescing",
        "uncoalesced_access", "shared_memory_tiling", *_MEMORY_SYMPTOMS,
    ),
    "local_memory_indexing": (
        "memory_coalescing", "uncoalesced_access", "shared_memory_tiling", *_MEMORY_SYMPTOMS,
    ),
    "memory_coalescing": ("uncoalesced_access", *_MEMORY_SYMPTOMS),
    "uncoalesced_access": _MEMORY_SYMPTOMS,
    "shared_bank_conflicts": ("warp_stall", "barrier_stall", "shared_memory_tiling"),
    "atomic_contention": ("warp_stall", "barrier_stall", "memory_coalescing", *_MEMORY_SYMPTOMS),
    "launch_configuration": ("occupancy_limiter", "warp_divergence", "warp_stall"),
    "high_register_usage": ("occupancy_limiter", "warp_stall"),
    "occupancy_limiter": ("warp_stall",),
    "barrier_stall": ("warp_stall",),
    "shared_memory_tiling": ("warp_stall", "cache_locality", "vectorization"),
    "fp64_usage": (
        "warp_stall", "tensor_core_underutilization", "warp_divergence", "special_function_bound",
    ),
    "special_function_bound": ("warp_stall",),
    "integer_arithmetic": ("warp_stall",),
    "tensor_core_underutilization": ("warp_stall",),
    "wgmma_usage": ("warp_stall",),
    "cache_locality": ("dram_bandwidth",),
    "dram_bandwidth": ("warp_stall",),
    "vectorization": ("warp_stall",),
    "host_synchronization": ("launch_overhead",),
    # CPU.
    "denormals": ("simd_width", "cpu_memory_bandwidth", "thread_scaling"),
    "scalar_math_call": ("simd_width", "cpu_memory_bandwidth"),
    "simd_width": ("cpu_memory_bandwidth", "cpu_cache_blocking"),
    "thread_scaling": ("cpu_memory_bandwidth",),
    "loop_division": ("cpu_memory_bandwidth",),
    "framework_overhead": ("cpu_memory_bandwidth",),
}  # fmt: skip
"""Cause -> symptoms it explains. A symptom never ranks before a cause found in the same kernel.
(Double-precision functions are software with branches, and their conversions use the
special-function unit.)"""

MAY_EXPLAIN: dict[str, tuple[str, ...]] = {"warp_divergence": ("warp_stall", "barrier_stall")}
"""The same, if the cause is large enough for the symptom."""
EXPLAINS = 0.4
"""Least expected gain of such a cause, over the symptom's and both in logarithms (chosen: a few
idle lanes do not explain a block that waits most of the time)."""


_FILLS_THE_GPU = ("launch_configuration", "high_register_usage", "occupancy_limiter")
_TRAFFIC = ("memory_coalescing", "uncoalesced_access", "shared_memory_tiling", *_MEMORY_SYMPTOMS)
PRECEDES_IN_CLASS: dict[RooflineClass, dict[str, tuple[str, ...]]] = {
    "occupancy": dict.fromkeys(_FILLS_THE_GPU, _TRAFFIC),
}
"""More of the same where the class decides: with too few warps in flight no memory unit is busy,
so less traffic gains little before there are more warps (Little's law)."""


class Placed(NamedTuple):
    """A finding with the kernel it belongs to, that kernel's share of the call, and its class."""

    finding: Finding
    kernel: int | None
    """Index of the kernel; None for a system-level finding."""
    time_share: float | None
    roofline_class: RooflineClass = "unknown"


def order(found: Sequence[Placed], weight: Weight = lambda _: 1.0) -> list[Placed]:
    """``found`` in order of worth, with ``rank`` filled in from 1."""
    urgent = [p for p in found if p.finding.severity is not Severity.INFO]
    info = [p for p in found if p.finding.severity is Severity.INFO]
    ordered = _causes_first(urgent, weight) + _causes_first(info, weight)
    return [
        p._replace(finding=replace(p.finding, rank=rank)) for rank, p in enumerate(ordered, start=1)
    ]


def score(placed: Placed, weight: Weight) -> float:
    """Log of the expected gain of the whole call (Amdahl), times confidence and track record."""
    finding = placed.finding
    of_call = gain.of_call(gain.middle(finding.expected_gain), placed.time_share)
    return math.log(of_call) * finding.confidence * weight(finding.tool)


def _causes_first(found: Sequence[Placed], weight: Weight) -> list[Placed]:
    """By score, but nothing before a finding of the same kernel that explains it."""
    waiting = sorted(
        found,
        key=lambda p: (-score(p, weight), -p.finding.confidence, p.finding.tool),
    )
    left: dict[int | None, list[Placed]] = {None: []}
    for placed in waiting:
        left.setdefault(placed.kernel, []).append(placed)
    ordered: list[Placed] = []
    while waiting:
        free = next((p for p in waiting if not _explained(p, left)), waiting[0])
        waiting.remove(free)
        left[free.kernel].remove(free)
        ordered.append(free)
    return ordered


def _explained(symptom: Placed, left: dict[int | None, list[Placed]]) -> bool:
    """True if a cause of the same kernel, or of the whole call, still waits for its place."""
    others = [*left[None], *(left[symptom.kernel] if symptom.kernel is not None else ())]
    return any(_explains(other, symptom) for other in others if other is not symptom)


def _explains(cause: Placed, symptom: Placed) -> bool:
    if symptom.finding.tool in _symptoms_of(cause):
        return True
    if symptom.finding.tool not in MAY_EXPLAIN.get(cause.finding.tool, ()):
        return False
    log_gain, other = (math.log(p.finding.expected_gain[1]) for p in (cause, symptom))
    return log_gain >= EXPLAINS * other


def _symptoms_of(cause: Placed) -> tuple[str, ...]:
    in_class = PRECEDES_IN_CLASS.get(cause.roofline_class, {})
    tool = cause.finding.tool
    return (*PRECEDES.get(tool, ()), *in_class.get(tool, ()))


NEAR_ROOFLINE_NOTE = "The kernel is near its roofline, so this is for information only."


def at_roofline(finding: Finding) -> Finding:
    """``finding`` reduced to information: near the roofline nothing is worth acting on."""
    urgent = finding.severity is not Severity.INFO
    return replace(
        finding,
        severity=Severity.INFO,
        summary=f"{finding.summary} {NEAR_ROOFLINE_NOTE}" if urgent else finding.summary,
        expected_gain=(1.0, 1.0),
        gain_source="none left at the roofline",
    )
