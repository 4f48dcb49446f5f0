"""Keeps a crew of workers busy: gives each free one the next job, and a lost one's job to another.

One thread owns all of it; everything that happens (a job handed in, a worker ready, done or lost)
reaches that thread as a message. What a worker is, a process or a Ray actor, is its slot's affair.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol, TypeVar

from kernelpro.errors import MachineError
from kernelpro.executors.accounts import Accounts
from kernelpro.executors.base import Builds, Capacity, Health, Job, Place, Pool, Timed, WorkerHealth
from kernelpro.executors.fair import FairQueue, Waiting

T = TypeVar("T")

TICK_S = 0.5
"""How often deadlines are looked at."""
MAX_FAILED_STARTS = 3
"""Starts in a row after which a worker counts as broken (chosen)."""
RESTART_PAUSE_S = (0.0, 0.5, 2.0)
"""Pause before each of them."""


class Slot(Protocol):
    """A place for one worker at a time. Methods return at once; a future that ends with an
    exception means that the worker is gone."""

    name: str
    pool: Pool

    def open(self) -> Future[Place]:
        """Start a new worker; any earlier one is gone."""
        ...

    def start(self, text: str, attempt: int) -> Future[str]:
        """Give the sealed job to the worker; its sealed result."""
        ...

    def kill(self) -> None:
        """End the worker by force; what it was doing ends with an exception."""
        ...


class _Seat:
    """A slot with what its worker is doing."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.state = "starting"
        self.place: Place | None = None
        self.waiting: Waiting | None = None
        self.began = 0.0
        self.share: str | None = None
        self.failed_starts = 0
        self.detail = ""

    def health(self) -> WorkerHealth:
        job = self.waiting.job.id if self.waiting else ""
        return WorkerHealth(self.slot.name, self.state, self.place, job, self.detail)


class Crew:
    """An executor over slots. Closes them, and whatever ``on_close`` ends, when it is closed."""

    def __init__(
        self, name: str, slots: Sequence[Slot], *, overlaps: bool, builds: Builds = "none",
        on_close: Callable[[], None] = lambda: None, ask_again_s: float = TICK_S,
    ) -> None:  # fmt: skip
        self.name = name
        self.overlaps = overlaps
        self.builds = builds
        self.accounts = Accounts()
        self._on_close = on_close
        self._tick_s = ask_again_s
        self._seats = [_Seat(slot) for slot in slots]
        self._idle: dict[Pool, deque[_Seat]] = {"device": deque(), "cpu": deque()}
        self._queues: dict[Pool, FairQueue] = {"device": FairQueue(), "cpu": FairQueue()}
        self._problems: deque[str] = deque(maxlen=50)
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"crew-{name}", daemon=True)
        self._thread.start()
        for seat in self._seats:
            self._events.put(partial(self._open, seat))

    def submit(self, job: Job) -> Future[Timed]:
        """See :class:`Executor`."""
        future, text, new = self.accounts.open(job)
        if new and self._closing:
            self.accounts.interrupt()
        elif new:
            self._events.put(partial(self._queue, Waiting(job, text, 1)))
        return future

    def capacity(self) -> Capacity:
        """See :class:`Executor`."""
        device = [seat for seat in self._seats if seat.slot.pool == "device"]
        return Capacity(
            workers=sum(seat.state in ("idle", "busy") for seat in device),
            busy=sum(seat.state == "busy" for seat in device),
            waiting=len(self._queues["device"]),
            builders=sum(seat.slot.pool == "cpu" for seat in self._seats),
            builds_waiting=len(self._queues["cpu"]),
        )

    def health(self) -> Health:
        """See :class:`Executor`."""
        workers = tuple(seat.health() for seat in self._seats)
        return self.accounts.health(workers, tuple(self._problems))

    def release(self, share: str) -> None:
        """See :class:`Executor`."""
        for waiting in self._queues.values():
            self._events.put(partial(waiting.forget, share))

    def close(self) -> None:
        """See :class:`Executor`."""
        if self._closing:
            return
        self._closing = True
        self._events.put(None)
        self._thread.join()
        for seat in self._seats:
            seat.slot.kill()
        self.accounts.interrupt()
        self._on_close()

    # Below: the crew's own thread only.

    def _run(self) -> None:
        try:
            self._work()
        finally:
            if not self._closing:  # a fault of this program: nobody must wait for ever
                self.accounts.abandon(f"the thread of the executor {self.name} has ended")

    def _work(self) -> None:
        due = time.monotonic() + self._tick_s
        while True:
            try:
                event = self._events.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                due = time.monotonic() + self._tick_s
                self._look_at_deadlines()
                continue
            if event is None:
                return
            event()

    def _queue(self, waiting: Waiting, *, front: bool = False) -> None:
        pool = waiting.job.pool
        if pool == "cpu" and not any(seat.slot.pool == "cpu" for seat in self._seats):
            pool = "device"
        self._queues[pool].put(waiting, front=front)
        self._hand_out(pool)
        self._give_up_if_all_broken(pool)

    def _hand_out(self, pool: Pool) -> None:
        """Give free workers what fits them, until there is nothing or nobody left."""
        for _ in range(len(self._idle[pool])):
            if not len(self._queues[pool]):
                return
            seat = self._idle[pool].popleft()
            model = seat.place.model if seat.place and pool == "device" else None
            waiting = self._queues[pool].take(model, seat.share)
            if waiting is None:
                self._idle[pool].append(seat)
                continue
            seat.state, seat.waiting, seat.began = "busy", waiting, time.monotonic()
            seat.share = waiting.job.share
            future = seat.slot.start(waiting.text, waiting.attempt)
            future.add_done_callback(partial(self._post, partial(self._done, seat, waiting)))

    def _done(self, seat: _Seat, waiting: Waiting, future: Future[str]) -> None:
        self._queues[seat.slot.pool].served(waiting.job, time.monotonic() - seat.began)
        seat.waiting = None
        error = future.exception()
        if error is not None:
            self._note(f"{seat.slot.name} was lost with {waiting.job.id}: {error}")
            if self.accounts.lost(waiting.job.id, str(error)):
                self._queue(waiting._replace(attempt=waiting.attempt + 1), front=True)
            self._open(seat)
            return
        delivery = self.accounts.deliver(future.result())
        seat.state = "idle"
        self._idle[seat.slot.pool].append(seat)
        if delivery.verdict in ("retry", "corrupt", "foreign"):
            self._note(f"{seat.slot.name} could not do {waiting.job.id}: {delivery.reason}")
            again = delivery.verdict == "retry" or self.accounts.lost(
                waiting.job.id, delivery.reason
            )
            if again:
                self._queue(waiting._replace(attempt=waiting.attempt + 1), front=True)
        self._hand_out(seat.slot.pool)

    def _open(self, seat: _Seat) -> None:
        seat.state, seat.place, seat.share = "starting", None, None
        pause = RESTART_PAUSE_S[min(seat.failed_starts, len(RESTART_PAUSE_S) - 1)]
        if pause:
            timer = threading.Timer(pause, lambda: self._events.put(partial(self._open_now, seat)))
            timer.daemon = True
            timer.start()
        else:
            self._open_now(seat)

    def _open_now(self, seat: _Seat) -> None:
        future = seat.slot.open()
        future.add_done_callback(partial(self._post, partial(self._opened, seat)))

    def _opened(self, seat: _Seat, future: Future[Place]) -> None:
        error = future.exception()
        if error is None:
            seat.place, seat.state, seat.failed_starts = future.result(), "idle", 0
            self._idle[seat.slot.pool].append(seat)
            self._hand_out(seat.slot.pool)
            return
        seat.failed_starts += 1
        seat.detail = str(error)
        if seat.failed_starts < MAX_FAILED_STARTS:
            self._open(seat)
            return
        seat.state = "broken"
        self._note(f"{seat.slot.name} does not start: {error}")
        self._give_up_if_all_broken(seat.slot.pool)

    def _give_up_if_all_broken(self, pool: Pool) -> None:
        if any(seat.slot.pool == pool and seat.state != "broken" for seat in self._seats):
            return
        seats = [seat for seat in self._seats if seat.slot.pool == pool]
        reason = seats[-1].detail if seats else "there are none"
        for waiting in self._queues[pool].drain():
            error = MachineError(f"No worker of {self.name} starts: {reason}")
            self.accounts.fail(waiting.job.id, error)

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        for seat in self._seats:
            if seat.waiting is not None and now - seat.began > seat.waiting.job.timeout_s:
                self._note(f"{seat.slot.name} hangs on {seat.waiting.job.id}: killed")
                seat.slot.kill()

    def _note(self, problem: str) -> None:
        self._problems.append(problem)

    def _post(self, handle: Callable[[Future[T]], None], future: Future[T]) -> None:
        """Have a finished future handled in the crew's thread."""
        self._events.put(partial(handle, future))
