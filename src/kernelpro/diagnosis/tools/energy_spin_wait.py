"""Warps that wait by executing instructions: polling a flag burns energy without progress."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import seen, stall_share
from kernelpro.diagnosis.energy_model import energy_finding, spent
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SPINNING = ("membar", "branch_resolving", "sleeping")
"""Warp states of a polling loop: a fence or an acquiring load, the branch back, a back-off."""
LEAST_SHARE = 0.15
"""Share of a warp's time in those states from which it is said (chosen)."""


@tool("energy_spin_wait", devices=("cuda",),
      needs=(f"{m.stall('membar')}|{m.stall('branch_resolving')}", m.ISSUE_ACTIVE))  # fmt: skip
def energy_spin_wait(given: ToolInput) -> Finding | None:
    """Fence and branch stalls in a kernel that has atomics or fences, at their instructions' price.

    A branchy kernel without either does not poll and is left alone.
    """
    found, share = spent(given), stall_share(given, *SPINNING)
    talks = number(given, m.GLOBAL_ATOMICS, 0.0) + number(given, "sass.membar", 0.0)
    fences = stall_share(given, "membar") or 0.0
    if found is None or share is None or share < LEAST_SHARE or (talks <= 0 and fences <= 0):
        return None
    return energy_finding(
        given, "energy_spin_wait", found, share * (found.instructions_j + found.l2_j),
        summary=f"warps poll or fence {share:.0%} of the time.",
        cause="Blocks wait for each other by reading a flag in a loop (split-K in turn, a software "
        "grid barrier, a persistent queue that is empty).",
        actions=(
            "Wait with one warp and __nanosleep, the others at a barrier; on Hopper wait on an "
            "mbarrier, which suspends the warp.",
            "Reduce partial results with atomics or a second kernel instead of taking turns.",
        ),
        moves=("fewer_barriers", "privatize_atomics", "split_k"),
        evidence=seen(given, *((m.stall(reason), None) for reason in SPINNING),
                      (m.GLOBAL_ATOMICS, None)),
        gain_source="share of the waiting states times the energy of instructions and L2",
        confidence=0.4,
        useful=(m.GLOBAL_ATOMICS,),
    )  # fmt: skip
