"""Scattered accesses whose unused bytes really travel from L2 or DRAM: the cache does not help."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import (
    MEMORY_STALLS,
    finding,
    memory_share,
    seen,
    stall_share,
)
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.waste import global_efficiency
from kernelpro.schema.finding import Finding

L1_HIT = 30.0
"""Percent of L1 hits below which the cache does not rescue the pattern (paper)."""
STALLS = 0.40
"""Share of memory stalls from which they are the kernel's problem (paper)."""
EFFICIENCY = 0.6
"""Used share of the moved bytes below which traffic is wasted (chosen: above, the paper's two
conditions alone hold for every healthy streaming kernel)."""


@tool(
    "memory_coalescing",
    devices=("cuda",),
    needs=(
        m.L1_HIT,
        f"{m.GLOBAL_SECTORS}|{m.LOAD_BYTES_PER_SECTOR}|{m.STORE_BYTES_PER_SECTOR}",
    ),
)
def memory_coalescing(given: ToolInput) -> Finding | None:
    """The paper's trigger (low L1 hits, memory stalls), if most of the traffic is unused bytes."""
    efficiency = global_efficiency(given)
    hits = number(given, m.L1_HIT, 100.0)
    if efficiency is None or efficiency <= 0 or efficiency > EFFICIENCY or hits >= L1_HIT:
        return None
    stalls = stall_share(given, *MEMORY_STALLS)
    share = memory_share(given)
    if (stalls if stalls is not None else share) < STALLS:
        return None
    return finding(
        given,
        "memory_coalescing",
        gain.amdahl(share, 1.0 / efficiency),
        summary=f"only {efficiency:.0%} of the bytes fetched and written are used, and L1 serves "
        f"{hits:.0f} % of the accesses: the waste travels from L2 and DRAM.",
        cause="Each thread of a warp reads from a different cache line, and the rest of the line "
        "is gone before another thread wants it.",
        actions=(
            "Change the data layout or the thread mapping so that the 32 threads of a warp cover "
            "128 consecutive bytes per load.",
            "If the indices come from data, sort or bucket them first, or let a whole warp fetch "
            "each wanted row.",
        ),
        evidence=seen(
            given, (m.L1_HIT, L1_HIT), (m.LOAD_BYTES_PER_SECTOR, 32 * EFFICIENCY),
            (m.STORE_BYTES_PER_SECTOR, 32 * EFFICIENCY), (m.DRAM_PCT, None),
            (m.stall("long_scoreboard"), None),
        ),
        gain_source="Amdahl: share of the time at the memory limit, made cheaper by moved over "
        "used bytes",
        moves=("coalesce_loads", "structure_of_arrays", "stage_in_shared"),
        confidence=0.92,
        useful=(m.stall("long_scoreboard"), m.L2_HIT),
    )  # fmt: skip
