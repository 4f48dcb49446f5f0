"""A sensor that never existed: traces of a slow, noisy counter over a known power.

For the arithmetic only. It shows that a known answer comes out of such readings; it says nothing
about any real board.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from kernelpro.energy.trace import Reading, Trace, Window


def trace_of(
    power_w: Callable[[float], float],
    windows: Sequence[Window],
    *,
    update_hz: float = 10.0,
    poll_s: float = 0.004,
    noise: float = 0.0,
    phase_s: float = 0.037,
    seed: int = 0,
    limits: tuple[str, ...] | None = (),
    power_limit_w: float | None = 700.0,
) -> Trace:
    """Readings of a counter that is updated ``update_hz`` times a second, each step of it wrong
    by ``noise`` (share, one standard deviation, not accumulating)."""
    rng = random.Random(seed)
    end_s = max(w.end_s for w in windows) + 0.3
    steps, at_s, total_j, fine = [], phase_s, 0.0, 5e-3
    clock_s = 0.0
    while clock_s < end_s:
        total_j += power_w(clock_s) * fine
        clock_s += fine
        if clock_s >= at_s:
            steps.append((at_s, total_j * (1.0 + noise * rng.gauss(0, 1) / max(1.0, total_j))
                          if noise else total_j))  # fmt: skip
            at_s += 1.0 / update_hz
    readings, step, t_s = [], 0, 0.0
    while t_s < end_s:
        while step + 1 < len(steps) and steps[step + 1][0] <= t_s:
            step += 1
        known = steps[step][1] if steps[step][0] <= t_s else 0.0
        readings.append(Reading(t_s, energy_j=round(known, 3)))
        if len(readings) % 25 == 0:
            readings.append(Reading(t_s, power_w=power_w(t_s), sm_clock_mhz=1980.0,
                                    temperature_c=40.0, limits=limits))  # fmt: skip
        t_s += poll_s * rng.uniform(0.8, 1.2)
    return Trace("simulated", "no device", tuple(readings), tuple(windows), power_limit_w)


def busy(windows: Sequence[Window], watts: dict[str, float], idle_w: float = 100.0):
    """Power over time: each label's watts inside its windows, ``idle_w`` elsewhere."""

    def power(t_s: float) -> float:
        for window in windows:
            if window.start_s <= t_s < window.end_s:
                return watts.get(window.label, idle_w)
        return idle_w

    return power


def in_turns(labels: Sequence[str], rounds: int, *, seconds: float = 1.5, launches: int = 1000):
    """Windows in turns, ABBA, with pauses of varying length."""
    rng, at_s, windows = random.Random(5), 2.5, [Window("idle", 0.0, 2.0, 0)]
    for number in range(rounds):
        for label in labels if number % 2 == 0 else reversed(labels):
            at_s += rng.uniform(0.0, 0.1)
            windows.append(Window(label, at_s, at_s + seconds, launches))
            at_s += seconds
    return windows
