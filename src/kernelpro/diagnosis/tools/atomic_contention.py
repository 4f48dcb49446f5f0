"""Atomic operations that queue up at the same addresses."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, issue_share, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

SHARE = 0.01
"""Atomic instructions over all instructions from which they can rule (chosen)."""
STALLS = ("long_scoreboard", "lg_throttle", "drain", "membar", "mio_throttle", "short_scoreboard")
WAITING = 0.4
"""Share of stalls in which a queue of atomics shows (chosen)."""
STARVED = 0.4
"""Issue rate above which the atomics keep up (chosen)."""
PRIVATE = 8.0
"""Gain assumed for the waiting time after reducing within the block first (chosen; a block of 256
threads then sends 1/256 of the atomics)."""


@tool(
    "atomic_contention",
    devices=("cuda",),
    needs=(f"{m.GLOBAL_ATOMICS}|{m.GLOBAL_REDUCTIONS}|{m.SHARED_ATOMICS}|sass.atomic",),
)
def atomic_contention(given: ToolInput) -> Finding | None:
    """At least one instruction in a hundred is atomic, and warps wait on their queue."""
    counts = {
        "global": number(given, m.GLOBAL_ATOMICS, 0.0) + number(given, m.GLOBAL_REDUCTIONS, 0.0),
        "shared": number(given, m.SHARED_ATOMICS, 0.0),
    }
    total = value(given, m.INSTRUCTIONS)
    if sum(counts.values()) == 0:
        counts = {
            "global": number(given, "sass.atomic", 0.0),
            "shared": number(given, "sass.shared_atomic", 0.0),
        }
        total = value(given, "sass.total")
    atomics = sum(counts.values())
    if not total or atomics / total < SHARE:
        return None
    waiting = stall_share(given, *STALLS)
    if (waiting is not None and waiting < WAITING) or (issue_share(given) or 0.0) > STARVED:
        return None
    where_ = "global" if counts["global"] >= counts["shared"] else "shared"
    high = gain.amdahl(0.6 if waiting is None else waiting, PRIVATE)
    return finding(
        given,
        "atomic_contention",
        high,
        summary=f"{atomics / total:.1%} of the instructions are {where_}-memory atomics, and warps "
        f"spend {waiting or 0:.0%} of their time waiting in memory queues.",
        cause="Many threads update few addresses; updates of one address are done one after the "
        "other, so the whole GPU runs at the speed of one cache slice."
        if where_ == "global"
        else "Many threads of a block update few shared addresses, one after the other.",
        actions=(
            "Add up within the warp (__reduce_add_sync or shuffles) and the block (shared memory) "
            "first, then issue one atomic per block and address.",
            "For histograms keep one copy of the bins per block (or per warp) in shared memory and "
            "merge at the end.",
        ),
        evidence=seen(
            given, (m.GLOBAL_ATOMICS, None), (m.GLOBAL_REDUCTIONS, None), (m.SHARED_ATOMICS, None),
            (m.INSTRUCTIONS, None), (m.ATOMIC_SECTORS, None), (m.REDUCTION_SECTORS, None),
            ("sass.atomic", 0.0), (m.ISSUE_ACTIVE, STARVED),
        ),
        gain_source="Amdahl: share of the time in memory queues, 8x cheaper with privatised sums",
        moves=("privatize_atomics", "warp_shuffle"),
        confidence=0.85,
        useful=(m.GLOBAL_REDUCTIONS, m.INSTRUCTIONS),
    )  # fmt: skip
