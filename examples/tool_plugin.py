"""A micro-profiling tool of your own: kernels that wait for their instructions."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, seen, stall_share
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.15
"""Share of a warp's time without an instruction from which it costs (chosen)."""


@tool("instruction_cache", devices=("cuda",), needs=(m.stall("no_instruction"),))
def instruction_cache(given: ToolInput) -> Finding | None:
    """Warps wait for instructions: the code is larger than the cache, or jumps about."""
    share = stall_share(given, "no_instruction")
    if share is None or share < SHARE:
        return None
    return finding(
        given,
        "instruction_cache",
        gain.amdahl(share),
        summary=f"warps have no instruction to issue {share:.0%} of the time.",
        cause="The hot loop is larger than the instruction cache, or warps are spread over it.",
        actions=("Unroll less, and move rarely taken branches out of the loop.",),
        evidence=seen(given, (m.stall("no_instruction"), None), ("sass.hot.total", None)),
        gain_source="Amdahl: waiting for instructions removed",
        moves=("unroll_less",),
        confidence=0.7,
    )
