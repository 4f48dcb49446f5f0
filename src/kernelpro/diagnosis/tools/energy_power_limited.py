"""At the power limit time follows joules: saving energy is the way to speed."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import is_hottest, seen
from kernelpro.diagnosis.energy_model import PARTS, energy_finding, spent
from kernelpro.diagnosis.evidence import value
from kernelpro.diagnosis.tool import tool
from kernelpro.diagnosis.tools.power_throttle import LIMITED
from kernelpro.schema.finding import Finding

SAVED = 0.3
"""Share of the largest part that a rewrite aimed at it may save (chosen)."""
CURES: dict[str, tuple[str, ...]] = {
    "time": ("bigger_grid", "persistent_grid"),
    "DRAM traffic": ("fuse_kernels", "avoid_temporaries", "reduce_passes"),
    "L2 traffic": ("stage_in_shared", "larger_tile"),
    "instructions": ("vectorize_loads", "unroll_more", "approximate_math"),
    "double precision": ("avoid_fp64",),
}


@tool("energy_power_limited", devices=("cuda",), needs=(m.SYSTEM_POWER_LIMITED,))
def energy_power_limited(given: ToolInput) -> Finding | None:
    """A power limit is in force under load; says which part of the energy is the largest."""
    found, limited = spent(given), value(given, m.SYSTEM_POWER_LIMITED)
    if found is None or limited is None or limited < LIMITED or not is_hottest(given):
        return None
    worst = found.largest()
    part_j = dict(zip(PARTS, found, strict=True))[worst]
    return energy_finding(
        given, "energy_power_limited", found, SAVED * part_j,
        summary=f"the board is at its power limit {limited:.0%} of the time, so less energy is "
        f"more speed; most of it goes into {worst} ({part_j / found.total_j:.0%}).",
        cause="The clock falls until the power fits: time is then joules over watts.",
        actions=(
            f"Save on {worst} first.",
            "Compare versions by joules as well as by time; raising the limit is the "
            "administrator's choice.",
        ),
        moves=(*CURES[worst], "lower_power"),
        evidence=seen(given, (m.SYSTEM_POWER_LIMITED, LIMITED), (m.SYSTEM_SM_CLOCK_SHARE, None)),
        gain_source=f"{SAVED:.0%} of the largest part",
        confidence=0.5,
    )  # fmt: skip
