"""Warps that wait for each other at __syncthreads."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import (
    dram_saturated,
    finding,
    issue_share,
    seen,
    stall_share,
    threads_per_block,
)
from kernelpro.diagnosis.evidence import value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.30
"""Share of barrier stalls (paper)."""
LARGE_BLOCK = 512.0
"""Threads from which splitting the block helps by itself (NVIDIA's rule text)."""


@tool("barrier_stall", devices=("cuda",), needs=(m.stall("barrier"),))
def barrier_stall(given: ToolInput) -> Finding | None:
    """Barriers take 30 % or more of a warp's time, and DRAM is not what the block waits for."""
    share = stall_share(given, "barrier")
    if share is None or share < SHARE or dram_saturated(given):
        return None
    issuing = issue_share(given) or 0.3
    threads = threads_per_block(given)
    count = value(given, "sass.hot.barrier")
    often = f", {count:.0f} barrier(s) per pass of the hot loop" if count else ""
    large = threads is not None and threads >= LARGE_BLOCK
    return finding(
        given,
        "barrier_stall",
        min(gain.amdahl(share), 1.0 / max(issuing, 0.05)),
        summary=f"warps spend {share:.0%} of their time waiting at __syncthreads{often}.",
        cause="Either the block meets at a barrier more often than it has work, or one warp does "
        "work before the barrier that the others wait for.",
        actions=(
            "Reduce within warps by __shfl_down_sync first and meet once per block; the last 32 "
            "values need no barrier.",
            "Spread the work before the barrier over all warps, or let each warp handle its own "
            "rows so that no barrier is needed.",
            *(
                (f"Use smaller blocks ({threads:.0f} threads now): fewer warps then wait.",)
                if large
                else ()
            ),
        ),
        evidence=seen(
            given, (m.stall("barrier"), None), (m.LATENCY_PER_ISSUE, None), (m.ISSUE_ACTIVE, None),
            ("sass.hot.barrier", None),
        ),
        gain_source="Amdahl: barrier stalls removed, at most full issue rate",
        moves=("fewer_barriers", "warp_shuffle", "balance_before_barrier")
        + (("smaller_block",) if large else ()),
        confidence=0.85,
        useful=("sass.hot.barrier", m.ISSUE_ACTIVE),
    )  # fmt: skip
