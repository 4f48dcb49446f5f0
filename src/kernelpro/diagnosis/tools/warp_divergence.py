"""Instructions that run with part of the warp switched off."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import WARP, finding, issue_share, seen, threads_per_block
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

ACTIVE = 26.0
"""Threads per executed instruction below which lanes idle noticeably (chosen: 20 % of a warp)."""
TENSOR = 30.0
"""Percent of tensor pipe use from which single-lane producer warps are the design (chosen)."""
COST = 0.25
"""Least share of issuing cycles: kernels that wait for memory do not feel idle lanes (chosen)."""


@tool("warp_divergence", devices=("cuda",), needs=(m.THREADS_PER_INSTRUCTION,))
def warp_divergence(given: ToolInput) -> Finding | None:
    """Fewer than 26 of 32 lanes active on average, beyond what the block size explains."""
    active = number(given, m.THREADS_PER_INSTRUCTION, WARP)
    threads = threads_per_block(given) or WARP
    full = -(-threads // WARP) * WARP
    possible = WARP * threads / full
    if active >= ACTIVE or active >= 0.9 * possible or number(given, m.PIPE_TENSOR, 0.0) >= TENSOR:
        return None
    issuing = issue_share(given)
    if issuing is not None and issuing < COST:
        return None
    share = min(max(issuing or 0.7, 0.3) + 0.15, 1.0)
    uniform = number(given, m.UNIFORM_BRANCH_PCT, 100.0)
    branches = f"; {100 - uniform:.0f} % of the branch targets diverge" if uniform < 99 else ""
    return finding(
        given,
        "warp_divergence",
        gain.amdahl(share, possible / max(active, 1.0)),
        summary=f"only {active:.1f} of 32 lanes are active in an average instruction{branches}.",
        cause="Lanes of a warp take different branches or leave a loop after different numbers of "
        "steps; the warp runs every path, with the other lanes switched off.",
        actions=(
            "Give the lanes of a warp equal work: sort or bucket elements by branch or by length, "
            "or hand out new work to finished lanes (a queue per warp).",
            "Replace short branches by selects, and move long ones to separate kernels or to "
            "conditions that are equal within a warp.",
        ),
        evidence=seen(
            given, (m.THREADS_PER_INSTRUCTION, ACTIVE), (m.ACTIVE_THREADS_PER_INSTRUCTION, None),
            (m.UNIFORM_BRANCH_PCT, None), (m.ISSUE_ACTIVE, COST),
        ),
        gain_source="Amdahl: issuing share of the time, made cheaper by possible over active lanes",
        moves=("warp_uniform_work", "branch_free"),
        confidence=0.85,
        useful=(m.UNIFORM_BRANCH_PCT, m.ISSUE_ACTIVE),
    )  # fmt: skip
