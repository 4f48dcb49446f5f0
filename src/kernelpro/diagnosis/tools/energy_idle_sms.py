"""Multiprocessors that have nothing to do while the device is awake and paid for."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import blocks, dram_saturated, multiprocessors, seen
from kernelpro.diagnosis.energy_model import energy_finding, spent
from kernelpro.diagnosis.evidence import value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding

LEAST_IDLE = 0.2
"""Share of the multiprocessors' time that is idle from which it is said (chosen)."""


@tool("energy_idle_sms", devices=("cuda",), needs=(f"{m.SM_ACTIVE_CYCLES}|{m.GRID_SIZE}",))
def energy_idle_sms(given: ToolInput) -> Finding | None:
    """Idle share from active over elapsed cycles, else from blocks over multiprocessors.

    Not for a kernel that saturates DRAM: there idle multiprocessors cost nothing.
    """
    found, idle = spent(given), idle_share(given)
    if found is None or idle is None or idle < LEAST_IDLE or dram_saturated(given):
        return None
    return energy_finding(
        given, "energy_idle_sms", found, idle * found.awake_j,
        summary=f"multiprocessors are idle {idle:.0%} of the time at full clock.",
        cause="Too few blocks, a last wave that fills only part of the device, or blocks of "
        "unequal work: the device stays awake for the longest of them.",
        actions=(
            "Split the work further, along the reduction if there is nothing else.",
            "Use a persistent grid that takes tiles from a queue, so that all end together.",
        ),
        moves=("bigger_grid", "split_k", "persistent_grid", "smaller_tile"),
        evidence=seen(given, (m.SM_ACTIVE_CYCLES, None), (m.ELAPSED_CYCLES, None),
                      (m.GRID_SIZE, None)),
        gain_source="idle share of the time at the power of an awake device",
        confidence=0.7,
        useful=(m.SM_ACTIVE_CYCLES, m.ELAPSED_CYCLES),
    )  # fmt: skip


def idle_share(given: ToolInput) -> float | None:
    """Share of the multiprocessors' time without work, 0..1; None if it cannot be told."""
    active, elapsed = value(given, m.SM_ACTIVE_CYCLES), value(given, m.ELAPSED_CYCLES)
    if active is not None and elapsed:
        return min(max(1.0 - active / elapsed, 0.0), 1.0)
    many, units = blocks(given), multiprocessors(given)
    return max(0.0, 1.0 - many / units) if many is not None and units else None
