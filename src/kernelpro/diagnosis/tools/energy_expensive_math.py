"""Expensive arithmetic: double precision, IEEE division, conversions."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import seen
from kernelpro.diagnosis.energy_model import (
    PICO,
    costs,
    double_flops,
    energy_finding,
    instruction_pj,
    spent,
)
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

DIVISION_INSTRUCTIONS = 8.0
"""Instructions of an IEEE float division in SASS beside its reciprocal, without the slow path that
it branches to (read off SASS of sm_90: range check, refinement and residual)."""
REFINED = 0.05
"""Reciprocals (special-function instructions) over all instructions from which division may matter
(chosen)."""


@tool("energy_expensive_math", devices=("cuda",),
      needs=(f"{m.DFMA}|{m.CONVERSIONS}|sass.mufu|{m.PIPE_XU}",))  # fmt: skip
def energy_expensive_math(given: ToolInput) -> Finding | None:
    """Double-precision FLOPs at their extra price, conversions and divisions at an instruction's.

    A problem that is itself in double precision has no choice and is left alone.
    """
    found, prices = spent(given), costs(given)
    if found is None or prices is None or _is_double(given):
        return None
    each_j = PICO * instruction_pj(prices)
    converted_j = number(given, m.CONVERSIONS, 0.0) * each_j
    divided_j = _division_share(given) * found.instructions_j
    saved_j = found.double_j + converted_j + divided_j
    parts = {"double precision": found.double_j, "conversions": converted_j,
             "divisions": divided_j}  # fmt: skip
    worst = max(parts, key=lambda name: parts[name])
    return energy_finding(
        given, "energy_expensive_math", found, saved_j,
        summary=f"spends energy on expensive arithmetic, most of it on {worst}.",
        cause="A double literal or function, a float division with IEEE rounding (a reciprocal, "
        "two refinements and a range check), or values that change type in the inner loop.",
        actions=(
            "Where the tolerance allows, use __fdividef or multiply by a reciprocal computed once; "
            "approximate intrinsics (__expf, rsqrtf) instead of the exact functions.",
            "Write float literals with f; keep accumulators in float.",
            "Convert once, when loading, and compute in one type.",
        ),
        moves=("approximate_math", "hoist_division", "avoid_fp64"),
        evidence=seen(given, (m.DFMA, None), (m.CONVERSIONS, None), ("sass.mufu", None),
                      (m.PIPE_XU, None)),
        gain_source="double FLOPs times their extra price, conversions and division sequences at "
        "an instruction's",
        confidence=0.6 if double_flops(given) else 0.4,
        useful=(m.DFMA, m.CONVERSIONS),
    )  # fmt: skip


def _division_share(given: ToolInput) -> float:
    """Share of the instructions that refine reciprocals, from static counts; 0 if they are few."""
    reciprocals, total = number(given, "sass.mufu", 0.0), number(given, "sass.total", 0.0)
    slow = number(given, "sass.call", 0.0)
    if total <= 0 or slow <= 0 or reciprocals / total < REFINED:
        return 0.0
    return min(0.5, DIVISION_INSTRUCTIONS * reciprocals / total)


def _is_double(given: ToolInput) -> bool:
    graph = given.graph
    return graph is not None and any(
        i.spec is not None and i.spec.dtype == "float64" for i in graph.inputs
    )
