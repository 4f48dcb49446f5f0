"""One sitting at a run: records events, hands out requests, keeps time, and picks a run up again.

Events are recorded first and only then change the state, so a killed run is rebuilt by replay.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable

from kernelpro.errors import UserError
from kernelpro.loop.base import Listener
from kernelpro.loop.budget import evaluations_left
from kernelpro.loop.interrupts import Interrupts
from kernelpro.loop.library import shown
from kernelpro.loop.seeds import derived_seed
from kernelpro.loop.state import RunState, by_the_page
from kernelpro.schema.event import Asked, Event, NodeFinished, Stopped
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.search import Ask, Decision, StopReason
from kernelpro.search.tells import winner_id
from kernelpro.store.sittings import elapsed_s
from kernelpro.store.sqlite import RunStore


class Session:
    """A run whose folder is open for writing, and what is known about it so far."""

    def __init__(
        self, store: RunStore, state: RunState, *, listeners: Iterable[Listener] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.store = store
        self.state = state
        self.interrupts = Interrupts()
        self._listeners = tuple(listeners)
        self._clock = clock
        self._began = clock()
        self._elapsed_before = 0.0
        self._due: dict[int, ProposalRequest] = {}

    def record(self, event: Event) -> None:
        """Make the event durable, then let it change the state, then tell the listeners."""
        with self.interrupts.held_off():
            self.state.apply(self.store.append(event), event)
            if isinstance(event, NodeFinished):
                self._due.pop(event.tell.ask_id, None)
            for listener in self._listeners:
                listener(event)

    def stop(self, reason: StopReason, detail: str) -> Stopped:
        """Record the end of this sitting."""
        stopped = Stopped(
            reason=reason, best_id=self._best_id(), detail=detail,
            elapsed_s=round(self.elapsed_s(), 3),
        )  # fmt: skip
        self.record(stopped)
        return stopped

    def _best_id(self) -> str | None:
        """The winner of the second measurement; the search's own best where there was none."""
        state = self.state
        config = state.config
        survivor = winner_id(state.remeasured, config.objective, config.max_slowdown)
        return survivor or state.strategy.best()

    def replay(self) -> None:
        """Rebuild the state from the store, and the requests that were open when it stopped."""
        times = self.store.query("SELECT at, kind FROM event ORDER BY seq")
        self._elapsed_before = elapsed_s((str(at), str(kind)) for at, kind in times)
        latest = self.store.query(
            "SELECT seq FROM event WHERE kind = 'asked' ORDER BY seq DESC LIMIT ?",
            (max(1, self.state.config.parallel),),
        )
        may_be_open = {seq for (seq,) in latest}
        for seq, _, event in by_the_page(self.store.recorded(profiles=False)):
            self.state.apply(seq, event, replayed=True)
            if isinstance(event, Asked) and seq in may_be_open:
                # As they were when asked: results that came later must not show.
                self._due |= {ask.id: self._request(ask) for ask in event.asks}
        self._due = {i: r for i, r in self._due.items() if i in self.state.open_asks}

    def requests(self, count: int) -> list[ProposalRequest]:
        """Requests left open by a crash; else up to ``count`` new ones, recorded as asked.

        Never more than the evaluations left. Empty = the search has nothing left to expand.
        """
        if not self.state.open_asks:
            return self.more_requests(count)
        return [self._due_or_new(ask) for ask in self.state.open_asks.values()]

    def more_requests(self, count: int) -> list[ProposalRequest]:
        """Up to ``count`` new requests beside the open ones, recorded as asked.

        Never more in all than the evaluations left. Empty = none left, or nothing to expand.
        """
        count = self._room(count)
        asks = self.state.strategy.ask(count) if count > 0 else []
        if asks:
            self.record(Asked(asks=tuple(asks)))
        return [self._request(ask) for ask in asks]

    def requests_from(self, node_id: str, count: int) -> list[ProposalRequest]:
        """As :meth:`more_requests`, to go on from an attempt that the writer chose, not the search.

        ``UserError`` if there is no such attempt.
        """
        if node_id not in self.state.archive:
            raise UserError(f"The run has no attempt {node_id!r}; see kernelpro runs show")
        ok = self.state.archive.attempt(node_id).outcome.ok
        asks = [
            Ask(id=self.state.last_ask + 1 + n, parent_id=node_id,
                mode="optimize" if ok else "repair",
                decision=Decision(text=f"the writer chose {node_id}"))
            for n in range(self._room(count))
        ]  # fmt: skip
        if asks:
            self.state.strategy.restore(asks)
            self.record(Asked(asks=tuple(asks)))
        return [self._request(ask) for ask in asks]

    def _room(self, count: int) -> int:
        """How many of ``count`` new requests the evaluations left allow."""
        left = evaluations_left(self.state.budget, self.state.spending)
        return count if left is None else min(count, left - len(self.state.open_asks))

    def seconds(self) -> float:
        """The session's clock, for taking differences."""
        return self._clock()

    def elapsed_s(self) -> float:
        """Seconds worked on this run, earlier sittings included."""
        return self._elapsed_before + self._clock() - self._began

    def _due_or_new(self, ask: Ask) -> ProposalRequest:
        request = self._due[ask.id] if ask.id in self._due else self._request(ask)
        replies = tuple(self.state.exchanges.get(ask.id, ()))
        return dataclasses.replace(request, replies=replies) if replies else request

    def _request(self, ask: Ask) -> ProposalRequest:
        state, started = self.state, self.state.started
        parent = state.archive.attempt(ask.parent_id) if ask.parent_id else None
        return ProposalRequest(
            ask=ask,
            problem=started.problem,
            graphs=started.graphs,
            device=started.device,
            peaks=started.peaks,
            parent=parent,
            siblings=state.archive.siblings(ask.parent_id),
            best=state.best(),
            memory=(
                (*state.memory.recall(), *shown(started.lessons, parent))
                if state.config.memory
                else ()
            ),
            seen_hashes=state.archive.source_hashes(),
            seed=derived_seed(state.config.seed, "ask", ask.id),
        )
