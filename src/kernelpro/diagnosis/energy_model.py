"""Where a kernel's joules go, from measured prices (see ``calibrate --energy``). Arithmetic only.

The model is a sum: time at the power of an awake device, DRAM bytes, L2 bytes beyond those,
instructions, and what double precision and tensor cores cost. It predicts differences between
versions of a kernel, not a board's meter reading: predictions are settled against measurements.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelpro.diagnosis import cuda_metrics as m
from kernelpro.diagnosis import gain
from kernelpro.diagnosis.base import ToolInput
from kernelpro.diagnosis.cuda_evidence import short_name
from kernelpro.diagnosis.evidence import absent, number, value
from kernelpro.schema.finding import Evidence, Finding, Severity
from kernelpro.schema.hardware import EnergyCosts
from kernelpro.text import format_si

SECTOR_BYTES = 32.0
FLOPS_PER_FMA = 2.0
"""A multiply-add instruction's price, FLOPs and issue together, stands for any instruction's."""
PICO = 1e-12


class Spent(NamedTuple):
    """Predicted joules of one launch, by what they are for."""

    awake_j: float
    """Time times the power of a device that is awake with next to nothing to do."""
    dram_j: float
    l2_j: float
    instructions_j: float
    double_j: float
    """What double precision costs beyond its instructions."""

    @property
    def total_j(self) -> float:
        """All of it."""
        return sum(self)

    def largest(self) -> str:
        """Name of the largest part."""
        parts = dict(zip(PARTS, self, strict=True))
        return max(parts, key=lambda name: parts[name])


PARTS = ("time", "DRAM traffic", "L2 traffic", "instructions", "double precision")


def costs(given: ToolInput) -> EnergyCosts | None:
    """The device's prices; None where they were not measured."""
    return None if given.peaks is None else given.peaks.energy


def dram_bytes(given: ToolInput) -> float | None:
    """Bytes that DRAM moved; None if neither direction was counted."""
    if value(given, m.DRAM_READ) is None and value(given, m.DRAM_WRITE) is None:
        return None
    return number(given, m.DRAM_READ, 0.0) + number(given, m.DRAM_WRITE, 0.0)


def double_flops(given: ToolInput) -> float:
    """Double-precision FLOPs that were counted."""
    fused = FLOPS_PER_FMA * number(given, m.DFMA, 0.0)
    return fused + number(given, m.DADD, 0.0) + number(given, m.DMUL, 0.0)


def single_flops(given: ToolInput) -> float:
    """Single-precision FLOPs on the scalar pipe that were counted."""
    fused = FLOPS_PER_FMA * number(given, m.FFMA, 0.0)
    return fused + number(given, m.FADD, 0.0) + number(given, m.FMUL, 0.0)


def instruction_pj(prices: EnergyCosts) -> float:
    """One thread's instruction."""
    return FLOPS_PER_FMA * prices.pj_per_flop.get("float32", 0.0)


def spent(given: ToolInput) -> Spent | None:
    """Predicted joules; None without prices, a duration or counted DRAM bytes."""
    prices, moved = costs(given), dram_bytes(given)
    if prices is None or moved is None or not given.kernel.duration_us:
        return None
    beyond = max(0.0, SECTOR_BYTES * number(given, m.L2_SECTORS, 0.0) - moved)
    extra = prices.pj_per_flop.get("float64", 0.0) - prices.pj_per_flop.get("float32", 0.0)
    return Spent(
        awake_j=1e-6 * given.kernel.duration_us * prices.active_w,
        dram_j=PICO * moved * (prices.dram_pj_per_byte or 0.0),
        l2_j=PICO * beyond * (prices.l2_pj_per_byte or 0.0),
        instructions_j=PICO * number(given, m.THREAD_INSTRUCTIONS, 0.0) * instruction_pj(prices),
        double_j=PICO * double_flops(given) * max(0.0, extra),
    )


def energy_finding(
    given: ToolInput, tool: str, found: Spent, saved_j: float, *, summary: str, cause: str,
    actions: tuple[str, ...], moves: tuple[str, ...], evidence: tuple[Evidence, ...],
    gain_source: str, confidence: float = 0.6, useful: tuple[str, ...] = (),
) -> Finding | None:  # fmt: skip
    """A finding about joules; None if so little can be saved that it asks for no action.

    ``expected_gain`` is energy before over after; the headroom of the roofline, which is about
    time, does not cap it.
    """
    left = found.total_j - min(saved_j, 0.95 * found.total_j)
    interval = gain.interval(found.total_j / left)
    severity = gain.severity(interval[1])
    if severity is Severity.INFO:
        return None
    predicted = (
        Evidence(metric="energy.predicted_j", value=found.total_j, unit="J"),
        Evidence(metric="energy.avoidable_j", value=saved_j, unit="J"),
    )
    said = f"{summary} About {format_si(saved_j, 'J')} of {format_si(found.total_j, 'J')} a launch."
    return Finding(
        tool=tool, severity=severity, rank=0, summary=f"{short_name(given)}: {said}",
        evidence=(*predicted, *evidence), cause=cause, actions=actions, expected_gain=interval,
        missing=absent(given, useful), confidence=confidence, moves=moves,
        gain_source=f"joules at measured prices: {gain_source}",
    )  # fmt: skip
