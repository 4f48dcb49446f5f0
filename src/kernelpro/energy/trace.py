"""What a sensor said over time, with the windows in which work ran; replayable from a small file.

The file holds counter edges and slow readings only, as differences of integers, so that minutes of
measurement take kilobytes. Pure records: no sensor, no clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

FORMAT = 1
_TIME_SCALE = 1e5
"""Stored times are in steps of 10 us."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a sensor. None = not asked at this moment, or not reported."""

    t_s: float
    """Monotonic clock."""
    energy_j: float | None = None
    """Running total of the counter."""
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    limits: tuple[str, ...] | None = None
    """Reasons for lowered clocks in force, by the driver's names; empty = none."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time in which one thing ran, again and again, without a pause."""

    label: str
    start_s: float
    end_s: float
    launches: int
    """0 for an idle window."""

    @property
    def seconds_per_launch(self) -> float:
        """Duration of one launch, gaps included."""
        return (self.end_s - self.start_s) / self.launches


@dataclass(frozen=True, slots=True)
class Trace:
    """Readings in order of time, and windows."""

    meter: str
    device: str
    readings: tuple[Reading, ...]
    windows: tuple[Window, ...]
    power_limit_w: float | None = None
    started_at: str = ""
    """UTC, ISO 8601: when the clock of the readings stood at its first one."""

    def within(self, start_s: float, end_s: float) -> tuple[Reading, ...]:
        """Readings from ``start_s`` to ``end_s``."""
        return tuple(r for r in self.readings if start_s <= r.t_s <= end_s)

    def of(self, label: str) -> tuple[Window, ...]:
        """Windows with this label, in order."""
        return tuple(w for w in self.windows if w.label == label)


_SLOW = ("power_w", "sm_clock_mhz", "memory_clock_mhz", "temperature_c")
_SLOW_SCALE = {"power_w": 100.0, "sm_clock_mhz": 1.0, "memory_clock_mhz": 1.0,
               "temperature_c": 1.0}  # fmt: skip


def thinned(readings: Sequence[Reading]) -> list[Reading]:
    """Readings that carry news: counter edges with the reading before, and slow readings."""
    kept: list[Reading] = []
    last_energy: float | None = None
    before: Reading | None = None
    for index, reading in enumerate(readings):
        edge = reading.energy_j is not None and reading.energy_j != last_energy
        slow = any(getattr(reading, name) is not None for name in _SLOW) or reading.limits
        if edge and before is not None and (not kept or kept[-1] is not before):
            kept.append(before)
        if edge or slow or index in (0, len(readings) - 1):
            kept.append(reading)
        if reading.energy_j is not None:
            last_energy = reading.energy_j
        before = reading
    return kept


def dump_trace(trace: Trace) -> str:
    """``trace`` as one line of JSON; :func:`load_trace` reads it back.

    Times are rounded to 10 us, energies to 1 mJ, powers to 10 mW.
    """
    kept = thinned(trace.readings)
    zero_s = kept[0].t_s if kept else 0.0
    base_j = next((r.energy_j for r in kept if r.energy_j is not None), 0.0)
    reasons = sorted({name for r in kept for name in r.limits or ()})
    columns: dict[str, Any] = {
        "t": _differences(round((r.t_s - zero_s) * _TIME_SCALE) for r in kept),
        "energy_mj": _differences(
            None if r.energy_j is None else round((r.energy_j - base_j) * 1e3) for r in kept
        ),
        "limits": [None if r.limits is None else [reasons.index(n) for n in r.limits]
                   for r in kept],
        **{name: _differences(
            None if getattr(r, name) is None else round(getattr(r, name) * _SLOW_SCALE[name])
            for r in kept) for name in _SLOW},
    }  # fmt: skip
    windows = [
        [w.label, *(round((at_s - zero_s) * _TIME_SCALE) for at_s in (w.start_s, w.end_s)),
         w.launches]
        for w in trace.windows
    ]  # fmt: skip
    return json.dumps(
        {"format": FORMAT, "meter": trace.meter, "device": trace.device,
         "power_limit_w": trace.power_limit_w, "started_at": trace.started_at, "base_j": base_j,
         "reasons": reasons,
         "columns": columns, "windows": windows},
        separators=(",", ":"),
    )  # fmt: skip


def load_trace(text: str) -> Trace:
    """The trace in ``text``; its times start at 0. ``ValueError`` if it is none of ours."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"not a trace of format {FORMAT}")
    columns, reasons = data["columns"], data["reasons"]
    times = _sums(columns["t"])
    energies = _sums(columns["energy_mj"])
    slow = {name: _sums(columns[name]) for name in _SLOW}
    readings = [
        Reading(
            t_s=(t or 0) / _TIME_SCALE,
            energy_j=None if energies[i] is None else data["base_j"] + energies[i] / 1e3,
            limits=None if limits is None else tuple(reasons[n] for n in limits),
            **{name: None if values[i] is None else values[i] / _SLOW_SCALE[name]
               for name, values in slow.items()},
        )
        for i, (t, limits) in enumerate(zip(times, columns["limits"], strict=True))
    ]  # fmt: skip
    windows = [Window(label, start / _TIME_SCALE, end / _TIME_SCALE, launches)
               for label, start, end, launches in data["windows"]]  # fmt: skip
    return Trace(data["meter"], data["device"], tuple(readings), tuple(windows),
                 data["power_limit_w"], data["started_at"])  # fmt: skip


def _differences(values: Iterable[int | None]) -> list[int | None]:
    """Each value less the last one that was there."""
    last, out = 0, list[int | None]()
    for value in values:
        out.append(None if value is None else value - last)
        last = last if value is None else value
    return out


def _sums(differences: Sequence[int | None]) -> list[Any]:
    total, out = 0, []
    for step in differences:
        total += step or 0
        out.append(None if step is None else total)
    return out
