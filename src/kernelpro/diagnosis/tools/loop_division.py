"""Floating-point divisions or square roots in the hot loop."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity

CYCLES_PER_DIVISION = 10.0
"""Reciprocal throughput of one packed float32 divide or square root: 5 cycles at 256 bits, 10 at
512 (instruction tables for x86-64 server cores)."""
CYCLES_PER_INSTRUCTION = 0.4
"""Reciprocal throughput of the rest of a vectorised loop (chosen, about 2.5 per cycle)."""
WORTH = 0.15
"""Divisions must cost at least this share of an iteration."""


@tool("loop_division", devices=("cpu",), needs=("cpu.loop_divisions", "cpu.loop_instructions"))
def loop_division(given: ToolInput) -> Finding | None:
    """Divisions that take a sixth or more of an iteration by instruction throughput."""
    divisions = number(given, "cpu.loop_divisions", 0.0)
    if divisions <= 0:
        return None
    others = max(number(given, "cpu.loop_instructions", 0.0) - divisions, 1.0)
    cost = divisions * CYCLES_PER_DIVISION
    measured = value(given, "cpu.mca_cycles_per_iteration")
    total = max(measured or 0.0, cost + others * CYCLES_PER_INSTRUCTION)
    share = cost / total
    if share < WORTH:
        return None
    return Finding(
        tool="loop_division",
        severity=Severity.MEDIUM,
        rank=0,
        summary=f"{given.kernel.name}: {divisions:.0f} divide or square-root instruction(s) per "
        f"iteration of the hot loop, about {share:.0%} of its cycles.",
        evidence=(observed(given, "cpu.loop_divisions", 0.0),),
        cause="Dividers are not pipelined like multipliers: one packed divide costs as much as "
        "about ten multiply-adds.",
        actions=(
            "If the divisor does not change inside the loop, compute its reciprocal once and "
            "multiply.",
            "Otherwise use the reciprocal estimate with one Newton step (x * (2 - d * x)), "
            "which keeps about 23 bits.",
        ),
        expected_gain=gain.interval(gain.amdahl(share, 5.0), given.stage1.headroom),
        confidence=0.6,
        moves=("hoist_division", "approximate_math"),
        gain_source="Amdahl: cycles of the divisions by instruction throughput, made 5x cheaper",
    )
