"""All that a run knows, derived from its events alone: replaying them rebuilds it exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from kernelpro.diagnosis.ledger import Ledger
from kernelpro.errors import StoreError
from kernelpro.loop.archive import Archive
from kernelpro.loop.memory import Memory
from kernelpro.loop.spending import Spending
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import (
    Asked,
    Event,
    Exchanged,
    NodeFinished,
    Remeasured,
    Resumed,
    RunStarted,
    Stopped,
)
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.proposal_request import Attempt
from kernelpro.schema.search import Ask, Tell
from kernelpro.search.base import Strategy
from kernelpro.store.sqlite import Recorded

_PAGE = 256
"""Events decoded before they are applied (chosen: as many as the store reads at a time)."""


def by_the_page(recorded: Iterable[Recorded]) -> Iterator[Recorded]:
    """The same events, decoded a page at a time.

    Decoding and applying in turns, event by event, takes longer: each drives the other's code and
    data out of the processor's caches.
    """
    events = iter(recorded)
    while page := list(islice(events, _PAGE)):
        yield from page


class RunState:
    """Changed by :meth:`apply` only, so that a live run and a replayed one cannot differ."""

    def __init__(
        self, started: RunStarted, strategy: Strategy, read_event: Callable[[int], Event]
    ) -> None:
        self.started = started
        self.config: RunConfig = started.config
        self.budget: Budget = started.config.budget
        self.strategy = strategy
        self.archive = Archive(read_event)
        self.memory = Memory()
        self.ledger = Ledger()
        self.spending = Spending()
        self.open_asks: dict[int, Ask] = {}
        self.last_ask = 0
        self.exchanges: dict[int, list[Exchange]] = {}
        """With models, by open ask: what a writer that is asked again need not pay for again."""
        self.accepted: list[Tell] = []
        self.statuses: Counter[str] = Counter()
        self.remeasured: dict[str, Outcome] = {}
        self.stopped: Stopped | None = None
        self._best_before: str | None = None

    def apply(self, seq: int, event: Event, *, replayed: bool = False) -> None:
        """Take in event number ``seq``. ``replayed``: the strategy did not make the asks itself."""
        match event:
            case RunStarted():
                if seq != 1:
                    raise StoreError(f"Event {seq} starts the run a second time")
            case Asked():
                if replayed:
                    self.strategy.restore(list(event.asks))
                self.open_asks.update({ask.id: ask for ask in event.asks})
                self.last_ask = max([self.last_ask, *(ask.id for ask in event.asks)])
            case Exchanged(exchange=exchange):
                self.exchanges.setdefault(exchange.ask_id, []).append(exchange)
                self.spending.add_exchange(exchange.ask_id, exchange.usage)
            case NodeFinished():
                self._finished(seq, event)
            case Remeasured():
                self.remeasured[event.node_id] = event.outcome
            case Resumed():
                self.budget = event.budget or self.budget
                self.stopped = None
                self.remeasured = {}
            case Stopped():
                self.stopped = event

    def best(self) -> Attempt | None:
        """The best accepted attempt of the search so far."""
        best_id = self.strategy.best()
        return None if best_id is None else self.archive.attempt(best_id)

    def next_node_id(self, *, ahead: int = 0) -> str:
        """``n0001``, ``n0002`` ... in order of admission; ``ahead`` are admitted already."""
        return f"n{len(self.archive) + ahead + 1:04d}"

    def _finished(self, seq: int, event: NodeFinished) -> None:
        self.open_asks.pop(event.tell.ask_id, None)
        self.exchanges.pop(event.tell.ask_id, None)
        self.strategy.tell(event.tell)
        self.archive.add(seq, event)
        self.memory.apply(event.memory)
        self.ledger.add(event.ledger)
        if event.outcome is not None:
            self.statuses[event.outcome.status.value] += 1
        if event.tell.speedup is not None and event.duplicate_of is None:
            self.accepted.append(event.tell)
        best = self.strategy.best()
        self.spending.add(event, improved=best != self._best_before)
        self._best_before = best
