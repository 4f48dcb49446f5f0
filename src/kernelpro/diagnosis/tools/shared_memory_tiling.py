"""Operands fetched again and again through L1 instead of being staged once."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import MEMORY_STALLS, finding, l1_share, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.waste import requested_over_fetched
from kernelpro.schema.finding import Finding

REUSE = 4.0
"""Requested over fetched bytes: each byte is used this often (chosen; a copy has 1)."""
STAGED = 0.25
"""Shared over global load instructions above which the kernel stages already (chosen)."""
COST = 0.45
"""Least share of the time in the L1 path or waiting for it (chosen)."""
L1_HIT = 60.0
"""Percent of L1 hits that shows reuse where sectors or DRAM bytes were not measured (chosen)."""
BEST = 8.0
"""Most that staging saves: register and shared tiles cut L1 requests by this factor (chosen)."""


@tool("shared_memory_tiling", devices=("cuda",), needs=(m.L1_HIT,))
def shared_memory_tiling(given: ToolInput) -> Finding | None:
    """High reuse served by L1, no shared memory in use, and the L1 path is what costs."""
    reuse = requested_over_fetched(given)
    hits = number(given, m.L1_HIT, 0.0)
    if (reuse is not None and reuse < REUSE) or (reuse is None and hits < L1_HIT):
        return None
    if hits < L1_HIT / 2 or stages_already(given):
        return None
    share = max(l1_share(given), stall_share(given, *MEMORY_STALLS) or 0.0)
    if share < COST or number(given, m.DRAM_PCT, 0.0) > 70.0:
        return None
    times = f"each byte about {reuse:.0f} times" if reuse else "the same bytes many times"
    return finding(
        given,
        "shared_memory_tiling",
        gain.amdahl(share, min(reuse or REUSE, BEST)),
        summary=f"asks L1 for {times} (L1 hit rate {hits:.0f} %), without "
        "staging anything in shared memory or registers.",
        cause="Threads of a block use overlapping data, and each fetches its own copy by its own "
        "load: the load-store path is saturated although DRAM is idle.",
        actions=(
            "Load the tile that a block shares (plus its halo) into shared memory once, "
            "synchronise, and compute from there.",
            "Compute several outputs per thread, so that a loaded value is used several times "
            "from a register.",
        ),
        evidence=seen(
            given, (m.L1_HIT, L1_HIT), (m.L1_PCT, None), (m.PIPE_LSU, None),
            (m.LOAD_SECTORS, None), (m.DRAM_READ, None), (m.SHARED_LOADS, None),
        ),
        gain_source="Amdahl: share of the time in the L1 path, made cheaper by the reuse (8x most)",
        moves=("stage_in_shared", "larger_tile", "more_work_per_thread"),
        confidence=0.75,
        useful=(m.LOAD_SECTORS, m.DRAM_READ, m.SHARED_LOADS),
    )  # fmt: skip


def stages_already(given: ToolInput) -> bool:
    """True if the kernel reads shared memory about as often as global memory."""
    shared, loads = value(given, m.SHARED_LOADS), value(given, m.GLOBAL_LOADS)
    if shared is not None and loads:
        return shared / loads > STAGED
    in_sass = value(given, "sass.lds")
    if in_sass is not None:
        return in_sass + number(given, "sass.ldsm", 0.0) > 0
    static, dynamic = value(given, m.SHARED_STATIC), value(given, m.SHARED_DYNAMIC)
    return (static or 0.0) + (dynamic or 0.0) > 0
