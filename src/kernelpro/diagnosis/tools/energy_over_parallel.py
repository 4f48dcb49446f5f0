"""More warps and multiprocessors than saturated memory can use: they wait, awake."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import blocks, dram_saturated, multiprocessors, seen
from kernelpro.diagnosis.energy_model import energy_finding, spent
from kernelpro.diagnosis.evidence import number
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

LEAST_WAVES = 4.0
"""Blocks per multiprocessor from which a persistent grid saves block starts (chosen)."""
SAVED = 0.5
"""Share of the instruction energy that a persistent grid on fewer multiprocessors may save
(chosen; the settled predictions correct it)."""


@tool("energy_over_parallel", devices=("cuda",), needs=(m.DRAM_PCT,))
def energy_over_parallel(given: ToolInput) -> Finding | None:
    """DRAM is saturated and the grid has many blocks for each multiprocessor."""
    found, many, units = spent(given), blocks(given), multiprocessors(given)
    if found is None or many is None or not units or not dram_saturated(given):
        return None
    if many / units < LEAST_WAVES:
        return None
    busy = number(given, m.DRAM_PCT, 0.0)
    return energy_finding(
        given, "energy_over_parallel", found, SAVED * found.instructions_j,
        summary=f"DRAM is {busy:.0f} % busy, and {many / units:.0f} blocks a multiprocessor "
        "wait for it.",
        cause="Once memory is saturated, further warps add scheduling, block starts and address "
        "arithmetic, not bytes.",
        actions=(
            "Launch a persistent grid, as many blocks as fit at once or fewer, each looping over "
            "the data with several wide loads in flight.",
            "Try three quarters and half of the multiprocessors: bandwidth often stays the same.",
        ),
        moves=("persistent_grid", "fewer_multiprocessors", "more_work_per_thread",
               "vectorize_loads"),
        evidence=seen(given, (m.DRAM_PCT, None), (m.GRID_SIZE, None), (m.ACHIEVED_OCCUPANCY, None)),
        gain_source="half of the instructions' energy; time stays as memory-bound as it is",
        confidence=0.3,
    )  # fmt: skip
