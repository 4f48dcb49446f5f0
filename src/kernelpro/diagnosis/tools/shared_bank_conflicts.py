"""Shared-memory accesses in which lanes of a warp hit the same bank and are served in turn."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import SHARED_STALLS, finding, seen, stall_share
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

EXCESS = 0.2
"""Share of the wavefronts that are repeats of conflicting accesses (chosen; counters show a few
percent from arbitration alone)."""


@tool(
    "shared_bank_conflicts",
    devices=("cuda",),
    needs=(
        f"{m.SHARED_WAVEFRONTS}|{m.SHARED_WAVEFRONTS_SASS}",
        f"{m.SHARED_CONFLICTS}|{m.SHARED_WAVEFRONTS_IDEAL}",
    ),
)
def shared_bank_conflicts(given: ToolInput) -> Finding | None:
    """A fifth or more of the wavefronts exist only because of conflicts, and the path is busy."""
    excess = excess_share(given)
    if excess is None or excess < EXCESS:
        return None
    waiting = stall_share(given, *SHARED_STALLS) or 0.0
    share = max(number(given, m.LSU_DATA_PCT, 0.0) / 100, number(given, m.L1_PCT, 0.0) / 100,
                waiting)  # fmt: skip
    ways = 1.0 / (1.0 - min(excess, 0.97))
    return finding(
        given,
        "shared_bank_conflicts",
        gain.amdahl(min(share, 1.0), ways),
        summary=f"{excess:.0%} of the shared-memory wavefronts are repeats: accesses take "
        f"{ways:.1f}x as long as they need.",
        cause="Lanes of a warp address different words in the same bank (a column of a tile whose "
        "row length is a multiple of 32 words, or a power-of-two stride).",
        actions=(
            "Pad the row of the shared tile by one word (float tile[32][33]) or swizzle the "
            "column index with the row (col ^ row).",
            "For strided tree steps use contiguous indices (thread t adds t and t + stride), or "
            "exchange by warp shuffles.",
        ),
        evidence=seen(
            given, (m.SHARED_CONFLICTS, None), (m.SHARED_WAVEFRONTS, None),
            (m.SHARED_WAVEFRONTS_IDEAL, None), (m.LSU_DATA_PCT, None),
            (m.stall("mio_throttle"), None), (m.stall("short_scoreboard"), None),
        ),
        gain_source="Amdahl: share of the time in the shared-memory path, made cheaper by actual "
        "over ideal wavefronts",
        moves=("pad_shared", "warp_shuffle"),
        confidence=0.9,
        useful=(m.SHARED_WAVEFRONTS_IDEAL, m.LSU_DATA_PCT),
        example="__shared__ float tile[32][33];",
    )  # fmt: skip


def excess_share(given: ToolInput) -> float | None:
    """Share of shared-memory wavefronts beyond the ideal; by instruction where measured."""
    actual, ideal = value(given, m.SHARED_WAVEFRONTS_SASS), value(given, m.SHARED_WAVEFRONTS_IDEAL)
    if actual and ideal is not None:
        return max(1.0 - ideal / actual, 0.0)
    wavefronts, conflicts = value(given, m.SHARED_WAVEFRONTS), value(given, m.SHARED_CONFLICTS)
    if wavefronts and conflicts is not None:
        return min(conflicts / wavefronts, 1.0)
    return None
