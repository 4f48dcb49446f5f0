"""Joules per launch of a workload, and of two workloads against each other, with intervals.

Warm first, idle measured apart, windows at random phases of the counter, as many as the wanted
interval needs. The caller's workload decides what is run; nothing here changes a device.
"""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpro.energy import statistics
from kernelpro.energy.session import Session, Workload
from kernelpro.energy.statistics import Interval, PairedRatio
from kernelpro.energy.trace import Trace, Window
from kernelpro.energy.windows import WindowPower, window_power
from kernelpro.schema.outcome import Energy

STEADY_C = 1.0
"""Two warm-up windows whose mean temperatures differ less than this are steady (chosen)."""
LIMITED_SHARE = 0.05
"""Share of readings with a power limit from which a measurement counts as power-limited (chosen).
"""


@dataclass(frozen=True, slots=True)
class EnergyPlan:
    """How long to measure."""

    window_s: float = 1.5
    """Chosen: with edges known to 1 ms of a 10 Hz counter, the bound per window is 0.2 %."""
    least_windows: int = 3
    most_windows: int = 8
    target: float = 0.01
    """Half-width of the 95 % interval, as a share, at which measuring stops."""
    idle_s: float = 2.0
    idle_rest_s: float = 1.0
    """Waited before idle power is measured: clocks and fans need it to come down (chosen)."""
    warm_s: float = 8.0
    """Warm-up ends here even if the temperature still moves; the record says so."""


FAST = EnergyPlan(window_s=1.0, least_windows=2, most_windows=3, target=0.02, warm_s=2.0)
"""For a search: some ten seconds a candidate with its baseline."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Energy of one launch."""

    joules: Interval
    """All that the counter saw while it ran, idle power included."""
    dynamic_joules: Interval | None
    """Without idle power; None if idle power was not measured."""
    watts: float
    idle_watts: float | None
    seconds_per_launch: float
    windows: tuple[float, ...]
    """Joules per launch of each window."""
    window_s: float
    """Mean time between the edges used."""
    sampled_ratio: float | None
    """Mean of the board's own power readings over the counter's power: 1 if they agree."""
    sm_clock_mhz: float | None
    temperature_c: tuple[float, float] | None
    """Of the first and the last window."""
    power_limited: bool | None
    steady: bool
    error_share: float = 0.0
    """Bound on the error from not knowing when the counter stepped; part of the interval."""
    notes: tuple[str, ...] = ()

    def record(self, meter: str) -> Energy:
        """As part of an outcome."""
        return Energy(
            joules=self.joules.value, ci95_j=(self.joules.low, self.joules.high),
            idle_watts=self.idle_watts, average_watts=self.watts, window_s=self.window_s,
            meter=meter, power_limited=self.power_limited,
            dynamic_joules=self.dynamic_joules.value if self.dynamic_joules else None,
            windows_j=self.windows, sm_clock_mhz=self.sm_clock_mhz,
            temperature_c=self.temperature_c, notes=self.notes,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two workloads measured in turns."""

    first: Measured
    second: Measured
    energy: PairedRatio
    """Energy of the second over the first's, per launch."""
    time: PairedRatio
    """Time of the second over the first's, per launch, from the same windows."""


def warm_up(session: Session, workloads: Sequence[tuple[str, Workload]], plan: EnergyPlan) -> bool:
    """Run the workloads until the temperature stands still; whether it did within the plan.

    A device that reports no temperature is warmed for half the time and counts as steady.
    """
    spent, heats = 0.0, list[float]()
    while spent < plan.warm_s:
        for label, workload in workloads:
            window = session.run(f"warm:{label}", workload, min(plan.window_s, plan.warm_s))
            spent += window.end_s - window.start_s
        readings = session.trace().within(window.start_s, window.end_s)
        seen = [r.temperature_c for r in readings if r.temperature_c is not None]
        if not seen and spent >= plan.warm_s / 2:
            return True
        heats += [sum(seen) / len(seen)] if seen else []
        if len(heats) >= 2 and abs(heats[-1] - heats[-2]) < STEADY_C:
            return True
    return False


def measure(session: Session, label: str, workload: Workload, plan: EnergyPlan) -> Measured | str:
    """Energy of one launch of ``workload``; a sentence instead if the counter cannot tell."""
    session.idle(plan.idle_s, rest_s=plan.idle_rest_s)
    steady = warm_up(session, [(label, workload)], plan)
    for count in range(1, plan.most_windows + 1):
        session.run(label, workload, plan.window_s)
        if count >= plan.least_windows:
            found = summarise(session.trace(), label, steady=steady)
            if isinstance(found, str) or found.joules.half_width_share <= plan.target:
                return found
    return summarise(session.trace(), label, steady=steady)


def compare(
    session: Session, first: tuple[str, Workload], second: tuple[str, Workload], plan: EnergyPlan
) -> Comparison | str:
    """Both in turns (AB BA AB ...), so that heat and drift hit both alike."""
    session.idle(plan.idle_s, rest_s=plan.idle_rest_s)
    steady = warm_up(session, [first, second], plan)
    found: Comparison | str = "no window was measured"
    for count in range(1, plan.most_windows + 1):
        for label, workload in (first, second) if count % 2 else (second, first):
            session.run(label, workload, plan.window_s)
        if count >= max(2, plan.least_windows):
            found = summarise_pair(session.trace(), first[0], second[0], steady=steady)
            if isinstance(found, str):
                return found
            ratio = found.energy.ratio
            if count < plan.most_windows and ratio.half_width_share <= plan.target:
                return found
    return found


def summarise(trace: Trace, label: str, *, steady: bool = True) -> Measured | str:
    """The windows of ``label`` in a trace, live or replayed."""
    windows = trace.of(label)
    pairs = _powers(trace, windows)
    if isinstance(pairs, str):
        return pairs
    joules = [power.watts * window.seconds_per_launch for window, power in pairs]
    powers = [power for _, power in pairs]
    bound = plain.fmean(power.error_share for power in powers) / math.sqrt(len(powers))
    idle = idle_watts(trace)
    seconds = plain.fmean(window.seconds_per_launch for window, _ in pairs)
    dynamic = None
    if idle is not None:
        less = [j - idle * w.seconds_per_launch for j, (w, _) in zip(joules, pairs, strict=True)]
        dynamic = statistics.widened(statistics.mean_interval(less), bound)
    watts = plain.fmean(power.watts for power in powers)
    heats = [power.temperature_c for power in powers if power.temperature_c is not None]
    limited = [power.limited_share for power in powers if power.limited_share is not None]
    return Measured(
        joules=statistics.widened(statistics.mean_interval(joules), bound),
        dynamic_joules=dynamic, watts=watts, idle_watts=idle, seconds_per_launch=seconds,
        windows=tuple(joules), window_s=plain.fmean(power.seconds for power in powers),
        sampled_ratio=_ratio([p.sampled_watts for p in powers], watts),
        sm_clock_mhz=_mean([p.sm_clock_mhz for p in powers]),
        temperature_c=(heats[0], heats[-1]) if heats else None,
        power_limited=plain.fmean(limited) > LIMITED_SHARE if limited else None,
        steady=steady, error_share=bound, notes=_notes(steady, idle),
    )  # fmt: skip


def summarise_pair(
    trace: Trace, first: str, second: str, *, steady: bool = True
) -> Comparison | str:
    """The interleaved windows of two labels, paired in order."""
    one, two = summarise(trace, first, steady=steady), summarise(trace, second, steady=steady)
    if isinstance(one, str):
        return one
    if isinstance(two, str):
        return two
    count = min(len(one.windows), len(two.windows))
    times = [[w.seconds_per_launch for w in trace.of(label)[:count]] for label in (first, second)]
    bound = math.hypot(one.error_share, two.error_share)
    return Comparison(
        one, two, statistics.paired_ratio(one.windows[:count], two.windows[:count], bound),
        statistics.paired_ratio(times[0], times[1]),
    )  # fmt: skip


def idle_watts(trace: Trace) -> float | None:
    """Power of the idle windows; None if there is none that can tell."""
    found = [window_power(trace, window) for window in trace.of("idle")]
    powers = [power.watts for power in found if not isinstance(power, str)]
    return plain.fmean(powers) if powers else None


def _powers(trace: Trace, windows: Sequence[Window]) -> list[tuple[Window, WindowPower]] | str:
    pairs = []
    for window in windows:
        power = window_power(trace, window)
        if isinstance(power, str):
            return power
        pairs.append((window, power))
    return pairs or "no window was measured"


def _ratio(sampled: Sequence[float | None], watts: float) -> float | None:
    mean = _mean(sampled)
    return None if mean is None else mean / watts


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return plain.fmean(known) if known else None


def _notes(steady: bool, idle: float | None) -> tuple[str, ...]:
    notes = [] if steady else ["the temperature still rose when measuring began"]
    if idle is None:
        notes.append("idle power was not measured, so dynamic energy is not known")
    return tuple(notes)
