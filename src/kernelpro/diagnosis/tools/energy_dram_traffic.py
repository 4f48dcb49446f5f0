"""DRAM moves more bytes than the problem needs: each costs energy even where it costs no time."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import seen
from kernelpro.diagnosis.energy_model import PICO, costs, dram_bytes, energy_finding, spent
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding


@tool("energy_dram_traffic", devices=("cuda",), needs=(f"{m.DRAM_READ}|{m.DRAM_WRITE}",))
def energy_dram_traffic(given: ToolInput) -> Finding | None:
    """Bytes beyond the problem's compulsory ones, at the price of a DRAM byte.

    Only where the problem's graph says what is compulsory.
    """
    found, prices, moved = spent(given), costs(given), dram_bytes(given)
    if found is None or prices is None or moved is None or not prices.dram_pj_per_byte:
        return None
    needed = given.graph.compulsory_bytes if given.graph is not None else 0.0
    if needed <= 0 or moved <= needed:
        return None
    return energy_finding(
        given, "energy_dram_traffic", found, PICO * (moved - needed) * prices.dram_pj_per_byte,
        summary=f"DRAM moves {moved / needed:.1f} times the bytes that the problem needs.",
        cause="Intermediate results go through memory, or data is fetched again after it fell out "
        "of the cache.",
        actions=(
            "Fuse the operators so that intermediates stay in registers or shared memory.",
            "Read each input once: keep the row, or the tile, on chip.",
            "Order blocks so that neighbours in time share cache lines; store results that nobody "
            "reads soon with a streaming hint.",
        ),
        moves=("fuse_kernels", "avoid_temporaries", "reduce_passes", "reorder_blocks",
               "streaming_stores"),
        evidence=seen(given, (m.DRAM_READ, None), (m.DRAM_WRITE, None), (m.L2_HIT, None)),
        gain_source="bytes beyond the compulsory ones times pJ per DRAM byte",
        confidence=0.8,
    )  # fmt: skip
