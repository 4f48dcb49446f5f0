"""Global accesses that touch more 32-byte sectors than the bytes they use need."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, l1_share, memory_share, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.tools.dram_bandwidth import bytes_over_compulsory
from kernelpro.diagnosis.waste import global_efficiency, load_efficiency, store_efficiency
from kernelpro.schema.finding import Finding

RESCUED = 0.8
"""L1 hit rate over unused share of the bytes from which a later access of the same warp uses them:
then the pattern costs the L1 path only (chosen)."""
STORED = 0.1
"""Share of the sectors from which uncoalesced stores matter (chosen)."""
NO_MORE = 1.1
"""DRAM bytes over those the problem needs up to which nothing is fetched in vain (chosen; an
H200 kernel that read a small table unevenly beside its rows: 75 % of the bytes used, DRAM the limit
and at 1.0, and coalescing the table made it slower)."""
EXCESS = 1.2
"""Sectors over the ideal from which a pattern is called uncoalesced (paper)."""


@tool(
    "uncoalesced_access",
    devices=("cuda",),
    needs=(f"{m.GLOBAL_SECTORS}|{m.LOAD_BYTES_PER_SECTOR}|{m.STORE_BYTES_PER_SECTOR}",),
)
def uncoalesced_access(given: ToolInput) -> Finding | None:
    """More than 1.2x the ideal sectors, over all global loads and stores."""
    efficiency = global_efficiency(given)
    if efficiency is None or efficiency <= 0 or 1.0 / efficiency < EXCESS:
        return None
    loads, stores = load_efficiency(given), store_efficiency(given)
    side = _side(loads, stores)
    share = max(memory_share(given), l1_share(given)) if _travels(given) else l1_share(given)
    return finding(
        given,
        "uncoalesced_access",
        gain.amdahl(share, 1.0 / efficiency),
        summary=f"{side} use {efficiency:.0%} of the bytes they move: "
        f"{1 / efficiency:.1f}x the sectors that the data needs.",
        cause="Neighbouring threads of a warp access addresses that are not neighbours (a stride "
        "between threads, an array of structures, or an index), so every request is split into "
        "many 32-byte sectors.",
        actions=(
            "Let threadIdx.x run along the contiguous dimension: swap the roles of the indices, "
            "or transpose through a padded shared-memory tile so that both sides are contiguous.",
            "Split an array of structures into one array per field, or load whole structures as "
            "64- or 128-bit vectors and use every field.",
        ),
        evidence=seen(
            given, (m.GLOBAL_SECTORS, None), (m.GLOBAL_SECTORS_IDEAL, None),
            (m.LOAD_BYTES_PER_SECTOR, 32 / EXCESS), (m.STORE_BYTES_PER_SECTOR, 32 / EXCESS),
        ),
        gain_source="Amdahl: share of the time at the memory or L1 limit, made cheaper by actual "
        "over ideal sectors",
        moves=("coalesce_loads", "stage_in_shared", "structure_of_arrays"),
        confidence=0.9,
        useful=(m.L1_HIT, m.LOAD_BYTES_PER_SECTOR),
        example="out[y * n + x] = in[y * n + x];  // x = blockIdx.x * blockDim.x + threadIdx.x",
    )  # fmt: skip


def _travels(given: ToolInput) -> bool:
    """False if the caches serve what a load leaves unused; stores always go on to L2."""
    loads, stores = load_efficiency(given), store_efficiency(given)
    if stores is not None and stores < 1 / EXCESS:
        written = number(given, m.STORE_SECTORS, 0.0)
        if written >= STORED * (written + number(given, m.LOAD_SECTORS, 0.0)):
            return True
    if loads is None:
        return True
    moved = bytes_over_compulsory(given)
    if moved is not None and moved <= NO_MORE and _dram_limits(given):
        return False
    return number(given, m.L1_HIT, 0.0) / 100.0 < RESCUED * (1.0 - loads)


def _dram_limits(given: ToolInput) -> bool:
    """True if DRAM is the busiest part of the memory system."""
    busy = number(given, m.DRAM_PCT, 0.0)
    return busy > 0 and busy >= number(given, m.MEMORY_PCT, 100.0) - 1.0


def _side(loads: float | None, stores: float | None) -> str:
    """Which side is to blame, where the report tells them apart."""
    if loads is None or stores is None:
        return "global accesses"
    if loads < 1 / EXCESS and stores < 1 / EXCESS:
        return "global loads and stores"
    return "global loads" if loads < stores else "global stores"


def sectors_per_request(given: ToolInput) -> float | None:
    """Sectors of an average global load request; 4 is ideal for 32-bit accesses."""
    sectors, requests = value(given, m.LOAD_SECTORS), value(given, m.LOAD_REQUESTS)
    return sectors / requests if sectors is not None and requests else None
