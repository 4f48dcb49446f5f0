"""Subnormal numbers in the data: every operation on one can trap into microcode."""

from __future__ import annotations

from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity

SHARE = 0.001
"""One subnormal per thousand elements: at 16 lanes, 1.6 % of the vectors (chosen)."""
ASSIST_CYCLES = 150.0
"""Cost of one microcode assist on Intel cores (vendor's optimisation manual: about 150)."""
VECTOR_CYCLES = 4.0
"""Cycles a vector of a streaming loop takes otherwise (chosen)."""
LANES = 16.0


@tool("denormals", devices=("cpu",), needs=("cpu.denormal_output_share",))
def denormals(given: ToolInput) -> Finding | None:
    """Subnormal inputs or outputs beyond one in a thousand."""
    outputs = number(given, "cpu.denormal_output_share", 0.0)
    inputs = value(given, "cpu.denormal_input_share")
    worst = max(outputs, inputs or 0.0)
    if worst < SHARE:
        return None
    hit = 1.0 - (1.0 - min(worst, 1.0)) ** LANES
    slowdown = 1.0 + hit * ASSIST_CYCLES / VECTOR_CYCLES
    return Finding(
        tool="denormals",
        severity=Severity.HIGH,
        rank=0,
        summary=f"{worst:.1%} of the elements that {given.kernel.name} handles are subnormal "
        "(magnitude below 1.2e-38).",
        evidence=tuple(
            observed(given, name, SHARE)
            for name in ("cpu.denormal_input_share", "cpu.denormal_output_share")
            if value(given, name) is not None
        ),
        cause="The CPU finishes an operation with a subnormal operand or result in microcode, "
        "about 150 cycles for the whole vector.",
        actions=(
            "Set flush-to-zero and denormals-are-zero (_mm_setcsr(_mm_getcsr() | 0x8040)) at the "
            "start of every thread of the native function, and restore it at the end.",
            "Or clamp values under 1e-30 to zero where they arise (decaying products, softmax "
            "tails).",
        ),
        expected_gain=gain.interval(slowdown, given.stage1.headroom),
        missing=absent(given, ("cpu.denormal_input_share",)),
        confidence=0.7,
        moves=("flush_denormals",),
        gain_source="share of vectors with a subnormal x 150 cycles over 4 cycles a vector, "
        "capped by the headroom",
    )
