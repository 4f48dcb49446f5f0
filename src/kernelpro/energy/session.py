"""Watches a sensor while work runs: one thread reads, the caller marks windows.

Writes nothing to the device. The reading thread holds the interpreter for microseconds a time;
when exactly a counter stepped is known to within the reading interval, and that bound is kept.
"""

from __future__ import annotations

import datetime
import random
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from kernelpro.energy.base import Sensor
from kernelpro.energy.trace import Reading, Trace, Window, thinned
from kernelpro.errors import MachineError

POLL_S = 0.002
"""Between two looks at the counter: a hundred times finer than its 0.1 s steps (chosen)."""
STATE_S = 0.05
"""Between two looks at power, clocks and temperature (chosen)."""
UPDATE_S = 0.1
"""Step of the slowest known counter (H200: measured 10 a second); start phases vary over it."""
_THIN_ABOVE = 50_000


class Burst(NamedTuple):
    """What a workload did: from when to when it ran without a pause, and how often."""

    start_s: float
    end_s: float
    launches: int


Workload = Callable[[float], Burst]
"""Runs for about the given seconds, back to back, and waits for the device; clock: perf_counter."""


class Session:
    """A recording. Use as a context manager; it closes the sensor."""

    def __init__(
        self, sensor: Sensor, *, rng: random.Random, poll_s: float = POLL_S,
        update_s: float = UPDATE_S,
    ) -> None:  # fmt: skip
        """rng: draws the pauses that vary the phase between windows and counter."""
        self._sensor = sensor
        self._rng = rng
        self._poll_s, self._update_s = poll_s, update_s
        self._started_at = ""
        self._readings: list[Reading] = []
        self._windows: list[Window] = []
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._watch, name="energy", daemon=True)

    def __enter__(self) -> Session:
        self._started_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stop.set()
        self._thread.join()
        self._sensor.close()

    def run(self, label: str, workload: Workload, seconds: float) -> Window:
        """Run ``workload`` from a random phase of the counter and mark the window."""
        time.sleep(self._rng.uniform(0.0, self._update_s))
        burst = workload(seconds)
        self._check()
        window = Window(label, burst.start_s, burst.end_s, burst.launches)
        self._windows.append(window)
        return window

    def idle(self, seconds: float, *, rest_s: float = 0.0) -> Window:
        """Do nothing for ``seconds`` after a rest, and mark it."""
        time.sleep(rest_s)
        start = time.perf_counter()
        time.sleep(seconds)
        self._check()
        window = Window("idle", start, time.perf_counter(), 0)
        self._windows.append(window)
        return window

    def trace(self) -> Trace:
        """All that was read and marked so far."""
        return Trace(
            self._sensor.meter, self._sensor.device, tuple(self._readings), tuple(self._windows),
            self._sensor.power_limit_w, self._started_at,
        )  # fmt: skip

    def _watch(self) -> None:
        asked_s = -STATE_S
        while not self._stop.is_set():
            try:
                energy_j = self._sensor.energy_j()
                now = time.perf_counter()
                self._readings.append(Reading(now, energy_j=energy_j))
                if now - asked_s >= STATE_S:
                    asked_s = now
                    self._readings.append(self._sensor.state())
            except (OSError, ValueError) as error:
                self._failed = error
                return
            if len(self._readings) % _THIN_ABOVE == 0:
                self._readings[:] = thinned(self._readings)
            self._stop.wait(self._poll_s)

    def _check(self) -> None:
        if self._failed is not None:
            raise MachineError(
                f"The energy sensor of {self._sensor.device} stopped answering: {self._failed}"
            ) from self._failed
