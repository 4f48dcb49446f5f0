"""Power and energy of a window from a counter that moves in steps. Pure arithmetic.

A board's counter is updated some ten times a second: its value between updates says nothing. So
power is taken between two *edges* (moments at which the counter moved) that both lie inside the
window, over exactly the time between them, and energy per launch is that power times the time of
a launch. The first part of a window is left out: the sensor averages over the past.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.energy.trace import Reading, Trace, Window

SETTLE_S = 0.25
"""Start of a window that is not used. Chosen: two updates of a 10 Hz counter, and more than the
25 to 100 ms that board power sensors average over (arXiv 2312.02741)."""
LEAST_EDGES = 4
"""Fewer edges inside a window do not make a power. Chosen: 0.3 s of a 10 Hz counter."""
POWER_LIMIT_REASONS = frozenset({"SwPowerCap", "HwPowerBrakeSlowdown", "SyncBoost"})
"""NVML's clock event reasons that mean: lowered because of power."""
AT_LIMIT = 0.97
"""Mean power over the limit from which a window counts as power-limited even where the driver
names no reason. Chosen: the control loop of a board keeps it just below its limit."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A step of the counter: its new value, and when it stepped, to within ``slack_s``."""

    t_s: float
    energy_j: float
    slack_s: float


@dataclass(frozen=True, slots=True)
class WindowPower:
    """What one window says."""

    watts: float
    seconds: float
    """Between the two edges used."""
    error_share: float
    """Bound on the error of ``watts`` from not knowing exactly when the counter stepped."""
    edges: int
    sampled_watts: float | None
    """Mean of the board's power readings over the same time: an independent check."""
    sm_clock_mhz: float | None
    temperature_c: float | None
    limited_share: float | None
    """Share of the readings with a power limit in force; None = the driver does not say."""


def find_edges(readings: Sequence[Reading]) -> list[Edge]:
    """Every step of the counter. The first reading is no step: when it came about is unknown."""
    counted = [r for r in readings if r.energy_j is not None]
    edges = []
    for before, after in itertools.pairwise(counted):
        if after.energy_j is not None and after.energy_j != before.energy_j:
            middle = 0.5 * (before.t_s + after.t_s)
            edges.append(Edge(middle, after.energy_j, 0.5 * (after.t_s - before.t_s)))
    return edges


def window_power(trace: Trace, window: Window, *, settle_s: float = SETTLE_S) -> WindowPower | str:
    """Edge-aligned power of a window; a sentence instead if the window cannot tell."""
    start, end = window.start_s + settle_s, window.end_s
    inside = trace.within(start, end)
    edges = find_edges(inside)
    if len(edges) < LEAST_EDGES:
        return (f"the counter moved {len(edges)} times in the {max(0.0, end - start):.2g} s used "
                f"of window {window.label!r}; at least {LEAST_EDGES} are needed")  # fmt: skip
    first, last = edges[0], edges[-1]
    seconds = last.t_s - first.t_s
    watts = (last.energy_j - first.energy_j) / seconds
    if watts <= 0:
        return f"the counter ran backwards in window {window.label!r}"
    powers = [r.power_w for r in inside if r.power_w is not None]
    clocks = [r.sm_clock_mhz for r in inside if r.sm_clock_mhz is not None]
    heats = [r.temperature_c for r in inside if r.temperature_c is not None]
    said = [r.limits for r in inside if r.limits is not None]
    limited = _share(said, watts, trace.power_limit_w)
    return WindowPower(
        watts=watts, seconds=seconds, error_share=(first.slack_s + last.slack_s) / seconds,
        edges=len(edges), sampled_watts=_mean(powers), sm_clock_mhz=_mean(clocks),
        temperature_c=_mean(heats), limited_share=limited,
    )  # fmt: skip


def unaligned_joules(trace: Trace, start_s: float, end_s: float) -> float | None:
    """What reading the counter at two moments says: the naive measurement, for comparison."""
    counted = [r for r in trace.readings if r.energy_j is not None]
    times = [r.t_s for r in counted]
    first, last = bisect.bisect_right(times, start_s) - 1, bisect.bisect_right(times, end_s) - 1
    if first < 0 or last < 0:
        return None
    return (counted[last].energy_j or 0.0) - (counted[first].energy_j or 0.0)


def _share(said: Sequence[tuple[str, ...]], watts: float, limit_w: float | None) -> float | None:
    at_limit = limit_w is not None and watts >= AT_LIMIT * limit_w
    if not said:
        return 1.0 if at_limit else None
    share = sum(bool(POWER_LIMIT_REASONS.intersection(names)) for names in said) / len(said)
    return 1.0 if at_limit else share


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
