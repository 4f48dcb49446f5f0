"""Too few warps in flight because of shared memory, block size or block count per SM."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import (
    finding,
    issue_share,
    limits,
    memory_saturated,
    registers,
    seen,
    stall_share,
    threads_per_block,
)
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.tools.high_register_usage import BUSY, HIGH, TENSOR
from kernelpro.schema.finding import Finding
from kernelpro.text import format_si

ACHIEVED = 50.0
"""Percent of achieved occupancy below which it may cost (paper)."""
WAVE = 0.8
"""Waves per SM below which the grid, not a resource, limits (chosen)."""
TARGET = 50.0
"""Percent of occupancy that the gain is computed for; more rarely pays (chosen)."""


@tool("occupancy_limiter", devices=("cuda",), needs=(m.ACHIEVED_OCCUPANCY, m.THEORETICAL_OCCUPANCY))
def occupancy_limiter(given: ToolInput) -> Finding | None:
    """Achieved below 50 % by a limit of the launch, while schedulers starve and memory does not."""
    achieved = number(given, m.ACHIEVED_OCCUPANCY, 100.0)
    possible = number(given, m.THEORETICAL_OCCUPANCY, 100.0)
    issuing = issue_share(given)
    if achieved >= ACHIEVED or possible >= ACHIEVED or number(given, m.WAVES, 1.0) < WAVE:
        return None
    if (issuing or 0.0) >= BUSY or number(given, m.PIPE_TENSOR, 0.0) >= TENSOR:
        return None
    if memory_saturated(given):
        return None
    tight = limits(given)
    limiter = next(iter(tight), "a launch limit")
    if limiter == "registers" and (registers(given) or 0.0) > HIGH:
        return None  # high_register_usage says it better
    waiting = stall_share(given, "long_scoreboard", "short_scoreboard", "wait", "lg_throttle")
    share = 0.6 if waiting is None else waiting
    factor = min(TARGET / max(possible, 1.0), 4.0)
    shared = number(given, m.SHARED_STATIC, 0.0) + number(given, m.SHARED_DYNAMIC, 0.0)
    allowed = tight.get(limiter)
    return finding(
        given,
        "occupancy_limiter",
        min(gain.amdahl(share, factor), 1.0 / max(issuing or 0.3, 0.05)),
        summary=f"fills {achieved:.0f} % of the warp slots; {limiter} allows "
        + (f"{allowed:.0f} block(s) per SM" if allowed is not None else f"{possible:.0f} %")
        + (f" ({format_si(shared, 'B')} a block)." if limiter == "shared memory" else "."),
        cause="With few warps per scheduler, one that waits for memory leaves the scheduler with "
        "nothing to issue.",
        actions=_actions(given, limiter, shared),
        evidence=seen(
            given, (m.ACHIEVED_OCCUPANCY, ACHIEVED), (m.THEORETICAL_OCCUPANCY, ACHIEVED),
            (m.LIMIT_SHARED, None), (m.LIMIT_REGISTERS, None), (m.LIMIT_BLOCKS, None),
            (m.ISSUE_ACTIVE, BUSY),
        ),
        gain_source="Amdahl: latency stalls divided by the warps gained up to half occupancy, at "
        "most full issue rate",
        moves=("reduce_shared", "larger_block") if limiter != "registers" else ("launch_bounds",),
        confidence=0.75,
        useful=(m.ISSUE_ACTIVE, m.LIMIT_SHARED, m.stall("long_scoreboard")),
    )  # fmt: skip


def _actions(given: ToolInput, limiter: str, shared: float) -> tuple[str, ...]:
    threads = threads_per_block(given)
    if limiter == "shared memory":
        return (
            f"Use less than {format_si(shared / 2, 'B')} of shared memory a block: a smaller tile, "
            "fewer stages, half precision, or read-only tables through L1 or constant memory.",
            "Or let the block that owns the memory have more threads"
            + (f" than {threads:.0f}" if threads else "")
            + ", so that the same table serves more warps.",
        )
    if limiter == "blocks":
        return (
            f"Use larger blocks ({threads:.0f} threads now): 128 to 256 threads fill the SM with "
            "the number of blocks it can hold."
            if threads
            else "Use blocks of 128 to 256 threads.",
        )
    return (
        f"Change what limits the blocks per SM ({limiter}): a block size that divides 2048 threads "
        "evenly, or __launch_bounds__ with the number of blocks wanted.",
    )
