"""The GPU runs below its clock because of its power limit (or heat)."""

from __future__ import annotations

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import finding, is_hottest, seen
from kernelpro.diagnosis.evidence import number, value
from kernelpro.diagnosis.tool import tool
from kernelpro.schema.finding import Finding, Severity

LIMITED = 0.3
"""Share of the samples with a power or thermal limit in force (chosen)."""
CLOCK = 0.90
"""Clock over the highest clock below which it costs (chosen)."""
FREE = 0.97
"""Clock over the highest clock that a profiler's lock does not reach (chosen; the H200's base clock
is below 0.9 of it, unlocked light kernels of the planted-fault suite show 0.97 to 1.0)."""
BUSY = 50.0
"""A counter-based clock counts only for a kernel that loads the GPU: an idle one clocks down."""
LONG_US = 200.0
"""And only if it runs long enough to matter to the power controller (chosen)."""


@tool("power_throttle", devices=("cuda",), needs=(f"{m.SYSTEM_POWER_LIMITED}|{m.SM_CLOCK}",))
def power_throttle(given: ToolInput) -> Finding | None:
    """Throttle reasons sampled under load, else a low SM clock in a long, busy kernel.

    ncu locks the clocks to their base unless told otherwise, so a low clock is information only
    where no other kernel of the report proves that clocks were free.
    """
    limited, clock = value(given, m.SYSTEM_POWER_LIMITED), clock_share(given)
    if limited is not None:
        if limited < LIMITED:
            return None
        said = f"a power or thermal limit is in force {limited:.0%} of the time"
    else:
        busy = max(number(given, m.SM_PCT, 0.0), number(given, m.MEMORY_PCT, 0.0))
        long = (given.kernel.duration_us or 0.0) >= LONG_US
        if clock is None or clock >= CLOCK or busy < BUSY or not long:
            return None
        said = "the clock is low although the kernel is busy"
    if not is_hottest(given):
        return None
    sure = limited is not None or _clock_is_free(given)
    shown = "" if clock is None else f"; the SM clock is {clock:.0%} of the highest"
    return finding(
        given,
        "power_throttle",
        1.0 / max(clock or CLOCK, 0.3),
        summary=f"{said}{shown}.",
        cause="The board draws its full power, so the clock is lowered until it fits: time is then "
        "set by joules per result, not by cycles.",
        actions=(
            "Spend fewer joules: move less data (fusion, narrower types), use tensor cores instead "
            "of scalar arithmetic, avoid recomputation.",
            "Compare variants at equal clocks and report the clock with every number; a cooler or "
            "higher power limit is the administrator's choice.",
        ),
        evidence=seen(
            given, (m.SYSTEM_POWER_LIMITED, LIMITED), (m.SYSTEM_SM_CLOCK_SHARE, CLOCK),
            (m.SM_CLOCK, None), (m.MAX_CLOCK_KHZ, None),
        ),
        gain_source="highest over present clock, for work limited by the SM clock",
        moves=("lower_power",),
        confidence=0.6 if limited is not None else 0.4,
        at_most=Severity.CRITICAL if sure else Severity.INFO,
        useful=(m.SYSTEM_POWER_LIMITED, m.MAX_CLOCK_KHZ),
    )  # fmt: skip


def _clock_is_free(given: ToolInput) -> bool:
    """True if some kernel of the report ran at full clock: then the profiler did not lock it."""
    for kernel in given.profile.kernels:
        clock, highest = kernel.value(m.SM_CLOCK), kernel.value(m.MAX_CLOCK_KHZ)
        if clock and highest and clock / (highest * 1e3) >= FREE:
            return True
    return False


def clock_share(given: ToolInput) -> float | None:
    """SM clock under load over the highest SM clock."""
    share = value(given, m.SYSTEM_SM_CLOCK_SHARE)
    if share is not None:
        return share
    clock, highest = value(given, m.SM_CLOCK), value(given, m.MAX_CLOCK_KHZ)
    if highest is None and given.device is not None and given.device.clock_mhz:
        highest = given.device.clock_mhz * 1e3
    return clock / (highest * 1e3) if clock and highest else None
