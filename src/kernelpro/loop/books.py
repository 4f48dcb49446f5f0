"""The books of a run: what its writer's calls may cost, did cost, and said.

Writers work in threads; everything they hand in is recorded by the thread that owns the run.
"""

from __future__ import annotations

import queue
import threading
from typing import NamedTuple

from kernelpro.errors import BudgetExceeded
from kernelpro.loop.session import Session
from kernelpro.schema.event import Exchanged
from kernelpro.schema.exchange import Exchange

_TICK_S = 0.1
_LOOK_S = 1.0
"""A run's thread is woken when there is something to do; this is how long it waits at a time
(a controller has many such threads, and each look takes the interpreter from the others)."""


class _Entry(NamedTuple):
    exchange: Exchange
    recorded: threading.Event


class RunBooks:
    """Implements ``proposers.base.Books`` for one open run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inbox: queue.Queue[_Entry | None] = queue.Queue()
        self._lock = threading.Lock()
        self._reserved_tokens = 0
        self._reserved_usd = 0.0
        self._stopping = threading.Event()

    def reserve(self, tokens: int, cost_usd: float | None) -> None:
        """Set ``tokens`` and ``cost_usd`` aside; ``BudgetExceeded`` if they are not there."""
        self.check()
        budget, spending = self._session.state.budget, self._session.state.spending
        with self._lock:
            due = spending.tokens + self._reserved_tokens + tokens
            if budget.tokens is not None and due > budget.tokens:
                raise BudgetExceeded(
                    f"the next call may take {tokens} tokens; {spending.tokens} of "
                    f"{budget.tokens} are used"
                )
            due_usd = spending.cost_usd + self._reserved_usd + (cost_usd or 0.0)
            if budget.cost_usd is not None and due_usd > budget.cost_usd:
                raise BudgetExceeded(
                    f"the next call may cost ${cost_usd or 0:.2f}; ${spending.cost_usd:.2f} of "
                    f"${budget.cost_usd:.2f} are spent"
                )
            self._reserved_tokens += tokens
            self._reserved_usd += cost_usd or 0.0

    def record(self, exchange: Exchange, *, reserved: int, reserved_usd: float | None) -> None:
        """Hand ``exchange`` in, and wait until it is on disk."""
        entry = _Entry(exchange, threading.Event())
        self._inbox.put(entry)
        while not entry.recorded.wait(_TICK_S) and not self._stopping.is_set():
            pass
        with self._lock:
            self._reserved_tokens -= reserved
            self._reserved_usd -= reserved_usd or 0.0

    def check(self) -> None:
        """``BudgetExceeded`` once the run is being stopped: no call goes on for nothing."""
        if self._stopping.is_set():
            raise BudgetExceeded("the run is being stopped")

    def take_in(self) -> None:
        """Record what was handed in within the next moment. The run's own thread calls this."""
        try:
            entry = self._inbox.get(timeout=_LOOK_S)
        except queue.Empty:
            return
        if entry is None:
            return
        self._session.record(Exchanged(exchange=entry.exchange))
        entry.recorded.set()

    def wake(self) -> None:
        """Let :meth:`take_in` return at once; from any thread."""
        self._inbox.put(None)

    def stop(self) -> None:
        """Let no call begin, and end those under way."""
        self._stopping.set()

    def close(self) -> None:
        """Record what is left when all writers have returned."""
        while not self._inbox.empty():
            self.take_in()
