"""The host waits for the GPU in the middle of the work, and the GPU then waits for the host."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.evidence import absent, number, observed, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.05
"""Idle share after synchronisations from which they cost (chosen)."""


@tool(
    "host_synchronization",
    devices=("cuda",),
    needs=(m.SYSTEM_SYNC_GAP_SHARE, m.SYSTEM_SYNCS),
    scope="system",
)
def host_synchronization(given: ToolInput) -> Finding | None:
    """Synchronising calls inside the work, with idle time behind them."""
    count = number(given, m.SYSTEM_SYNCS, 0.0)
    idle = number(given, m.SYSTEM_SYNC_GAP_SHARE, 0.0)
    if count < 1 or idle < SHARE:
        return None
    late = number(given, m.SYSTEM_LAUNCH_BOUND_SHARE, 0.0)
    copies = value(given, m.SYSTEM_COPIES)
    high = gain.interval(gain.amdahl(idle + 0.5 * late))
    fetched = f" and copies between host and device {copies:.0f} times" if copies else ""
    return Finding(
        tool="host_synchronization",
        severity=gain.severity(high[1]),
        rank=0,
        summary=f"The host waits for the GPU {count:.0f} times inside the work{fetched}; the GPU "
        f"is idle {idle:.0%} of the time right after.",
        evidence=(
            observed(given, m.SYSTEM_SYNCS, 0.0),
            observed(given, m.SYSTEM_SYNC_GAP_SHARE, SHARE),
            *((observed(given, m.SYSTEM_COPIES),) if copies is not None else ()),
        ),
        cause="A value is fetched to the host (.item(), .cpu(), nonzero, boolean masks, printing, "
        "an explicit synchronize), so the queue drains and every launch after it starts cold.",
        actions=(
            "Keep the value on the device: use torch.where or masks of fixed size instead of "
            "boolean indexing, compare on the GPU, check convergence every N steps only.",
            "Use non_blocking copies from pinned memory where data must move.",
        ),
        expected_gain=high,
        missing=absent(given, (m.SYSTEM_SYNC_US, m.SYSTEM_COPIES)),
        confidence=0.92,
        moves=("remove_sync", "avoid_copies", "cuda_graph"),
        gain_source="Amdahl: idle time behind synchronisations, and half of the late launches "
        "they cause, removed",
    )
