"""Any number of workers that only pretend to work: slots of a crew, on one thread and a clock.

For tests and benchmarks of what hands out jobs and counts results.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from kernelpro.executors.base import Lost, Place, Pool, Workplace, place_of
from kernelpro.executors.perform import perform
from kernelpro.hardware.base import probe


class Fleet:
    """``count`` workers that take ``seconds`` for a job and die with one job in ``1 / loss``.

    A job is performed at the end of its time, so its handler should take next to none itself.
    """

    def __init__(self, count: int, *, seconds: float, loss: float = 0.0, seed: int = 0) -> None:
        self._draw = random.Random(seed)
        self._loss = loss
        self._seconds = seconds
        self._due: list[tuple[float, int, FleetSlot, Future[str], str, int]] = []
        self._tickets = itertools.count()
        self._wake = threading.Condition()
        self._closing = False
        self.lost = 0
        """Workers that died with a job."""
        self.performed = 0
        device = probe("cpu")
        self.slots = [
            FleetSlot(self, place_of(device, executor="simulated", worker=f"worker#{number}"))
            for number in range(count)
        ]
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No job ends after this."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def schedule(self, slot: FleetSlot, text: str, attempt: int) -> Future[str]:
        """The result of a job that begins now."""
        answer: Future[str] = Future()
        due = time.monotonic() + self._seconds * self._draw.uniform(0.5, 1.5)
        with self._wake:
            heapq.heappush(self._due, (due, next(self._tickets), slot, answer, text, attempt))
            self._wake.notify()
        return answer

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._closing and (not self._due or self._due[0][0] > time.monotonic()):
                    self._wake.wait(self._due[0][0] - time.monotonic() if self._due else None)
                if self._closing:
                    return
                _, _, slot, answer, text, attempt = heapq.heappop(self._due)
            if self._draw.random() < self._loss:
                self.lost += 1
                answer.set_exception(Lost(f"{slot.name} died (simulated)"))
            else:
                self.performed += 1
                answer.set_result(perform(text, attempt, slot.workplace))


class FleetSlot:
    """One of them; see ``crew.Slot``."""

    pool: Pool = "device"

    def __init__(self, fleet: Fleet, place: Place) -> None:
        self.name = place.worker
        self.workplace = Workplace(place=place, cache_root=Path("/nonexistent"))
        self._fleet = fleet

    def open(self) -> Future[Place]:
        """At once."""
        ready: Future[Place] = Future()
        ready.set_result(self.workplace.place)
        return ready

    def start(self, text: str, attempt: int) -> Future[str]:
        """See ``crew.Slot``."""
        return self._fleet.schedule(self, text, attempt)

    def kill(self) -> None:
        """Nothing to end."""
