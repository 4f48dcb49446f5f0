"""The state a GPU was in while it was measured, and what of it casts doubt on the times."""

from __future__ import annotations

from typing import Any

from kernelpro.hardware.nvml import GpuState, read_state
from kernelpro.schema.hardware import Device

POWER = frozenset({"SwPowerCap"})
"""Clock event reasons that a heavy kernel brings about itself: on record, no reason for doubt."""


def gpu_conditions(device: Device) -> tuple[dict[str, Any], list[str]]:
    """Evidence and warnings right after a measurement; nothing on a CPU."""
    return judged(read_state(device.uuid)) if device.kind == "cuda" else ({}, [])


def judged(state: GpuState) -> tuple[dict[str, Any], list[str]]:
    """The reading as evidence, and a warning for lowered clocks and for neighbours."""
    names = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons",
             "foreign_processes")  # fmt: skip
    evidence: dict[str, Any] = {name: getattr(state, name) for name in names}
    evidence["missing"] = [f"{gap.what}: {gap.reason}" for gap in state.missing]
    warnings = []
    lowered = [name for name in state.throttle_reasons or () if name not in POWER]
    if lowered:
        warnings.append(
            f"the GPU's clocks were lowered while it was measured: {', '.join(lowered)}"
        )
    if state.foreign_processes:
        pids = ", ".join(map(str, state.foreign_processes))
        warnings.append(f"other processes computed on this GPU while it was measured: {pids}")
    return {"gpu_state": {k: v for k, v in evidence.items() if v not in (None, [])}}, warnings
