"""Keeps writing, building and timing going side by side, and the results in the order of asking.

Up to ``parallel`` requests are open at once. Whatever is ready first, candidates are admitted and
results recorded in the order in which the search asked, so a run does not depend on the order of
arrival. Where the examiner cannot overlap with anything, a round is written, then evaluated.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from kernelpro.errors import BudgetExceeded, KernelproError
from kernelpro.loop.admission import admit
from kernelpro.loop.base import Examined, Examiner
from kernelpro.loop.books import RunBooks
from kernelpro.loop.examining import finished
from kernelpro.loop.session import Session
from kernelpro.loop.stopping import reason_to_stop
from kernelpro.loop.writing import Written, propose_all, without_chance_repeat, write_one
from kernelpro.proposers.base import Proposer
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.proposal_request import ProposalRequest
from kernelpro.schema.search import StopReason


class Taken(NamedTuple):
    """A request whose proposal was looked at, on its way to a result."""

    request: ProposalRequest
    candidate: Candidate | None
    """None = the writer had nothing to propose."""
    twin: str | None
    """Node with the same source; its outcome stands."""
    examined: Future[Examined] | None
    """None where there is nothing to wait for."""
    began_s: float


@dataclass(slots=True)
class _Turn:
    request: ProposalRequest
    written: Future[Written]
    taken: Taken | None = None


class Pipeline:
    """The turns in flight of one open run."""

    def __init__(
        self, session: Session, writer: Proposer, examiner: Examiner, books: RunBooks,
        record: Callable[[Taken], NodeFinished],
    ) -> None:  # fmt: skip
        self._session = session
        self._writer = writer
        self._examiner = examiner
        self._books = books
        self._record = record
        self._turns: deque[_Turn] = deque()
        self._watched: set[object] = set()
        """Futures whose end wakes the run's thread, once each."""
        self._failure: KernelproError | None = None
        """The writer's first."""

    def run(self) -> tuple[StopReason, str]:
        """Go on until there is a reason to stop and nothing is in flight; returns the reason.

        A writer that failed ends the search with its error, after everything else in flight is
        recorded; its request stays open.
        """
        with self._writers() as write:
            while True:
                self._record_ready()
                stop = reason_to_stop(self._session.state, self._session.elapsed_s())
                if stop is None and self._failure is None:
                    self._ask(write)
                if not self._turns:
                    break
                self._advance()
        if isinstance(self._failure, BudgetExceeded):
            return "budget_cost", str(self._failure)
        if self._failure is not None:
            raise self._failure
        return stop or ("exhausted", "the search has nothing left to expand")

    def take_all(
        self, turns: Sequence[tuple[ProposalRequest, Proposal | None]]
    ) -> list[NodeFinished]:
        """Start the evaluations of all these proposals, then record them in this order."""
        for request, proposal in turns:
            written = finished(Written(proposal))
            self._turns.append(_Turn(request, written, self.take(request, proposal)))
        records = []
        while self._turns:
            taken = self._turns[0].taken
            assert taken is not None
            records.append(self._record(taken))
            self._turns.popleft()
        return records

    def take(self, request: ProposalRequest, proposal: Proposal | None) -> Taken:
        """Admit a proposal, and start its evaluation unless its source was tried before."""
        began = self._session.seconds()
        if proposal is None:
            return Taken(request, None, None, None, began)
        state, pending = self._session.state, self._pending()
        node_id = state.next_node_id(ahead=self._admitted())
        candidate, rejection = admit(proposal, node_id=node_id, parent_id=request.ask.parent_id)
        twin = state.archive.with_source(candidate.source_hash) or pending.get(
            candidate.source_hash
        )
        if twin is not None:
            return Taken(request, candidate, twin, None, began)
        if rejection is not None:
            return Taken(request, candidate, None, finished(Examined(rejection, None)), began)
        return Taken(request, candidate, None, self._examiner.examine(candidate), began)

    def _ask(self, write: Callable[[list[ProposalRequest]], list[Future[Written]]]) -> None:
        """Fill up to ``parallel`` open requests; where nothing may overlap, only a whole round."""
        room = self._session.state.config.parallel - len(self._turns)
        if room <= 0 or (self._turns and not self._examiner.overlaps):
            return
        session = self._session
        requests = session.more_requests(room) if self._turns else session.requests(room)
        if requests:
            written = write(requests)
            self._turns += [_Turn(r, w) for r, w in zip(requests, written, strict=True)]

    def _advance(self) -> None:
        """Wait until the first turn has its result, or the next one its proposal; take that."""
        first = self._turns[0].taken
        if first is not None and first.examined is None:
            return
        unread = next((turn for turn in self._turns if turn.taken is None), None)
        awaited: list[Future[Written] | Future[Examined]] = []
        if first is not None and first.examined is not None:
            awaited.append(first.examined)
        if unread is not None:
            awaited.append(unread.written)
        if not any(future.done() for future in awaited):
            for future in awaited:
                if future not in self._watched:
                    self._watched.add(future)
                    future.add_done_callback(self._wake)
            while not any(future.done() for future in awaited):
                self._books.take_in()
        if unread is not None and unread.written.done():
            self._read(unread)

    def _read(self, turn: _Turn) -> None:
        """Look at what was written for the first turn that was not looked at yet."""
        tried = self._session.state.archive.source_hashes()
        written = without_chance_repeat(
            self._writer, turn.request, turn.written.result(), tried, self._pending().keys(),
            self._books,
        )  # fmt: skip
        if written.failure is not None:
            self._failure = self._failure or written.failure
            self._turns.remove(turn)
        else:
            turn.taken = self.take(turn.request, written.proposal)

    def _record_ready(self) -> None:
        """Record the first turn if it has its result. One only: the next request comes between,
        so that what a request shows does not depend on what arrived together."""
        first = self._turns[0].taken if self._turns else None
        if first is not None and (first.examined is None or first.examined.done()):
            self._record(first)
            self._turns.popleft()

    def _admitted(self) -> int:
        """Candidates that have their number and are not recorded."""
        return sum(turn.taken is not None and turn.taken.candidate is not None
                   for turn in self._turns)  # fmt: skip

    def _pending(self) -> dict[str, str]:
        """Source hash -> the first node with it among those."""
        found: dict[str, str] = {}
        for turn in self._turns:
            if turn.taken is not None and turn.taken.candidate is not None:
                candidate = turn.taken.candidate
                found.setdefault(candidate.source_hash, candidate.id)
        return found

    @contextlib.contextmanager
    def _writers(self) -> Iterator[Callable[[list[ProposalRequest]], list[Future[Written]]]]:
        """How requests get written: in threads beside the evaluations, or all before them."""
        if not self._examiner.overlaps:
            yield lambda requests: [
                finished(w) for w in propose_all(self._writer, requests, self._books)
            ]
            return
        pool = ThreadPoolExecutor(self._session.state.config.parallel, thread_name_prefix="writer")
        try:
            yield lambda requests: [pool.submit(write_one, self._writer, r) for r in requests]
        finally:
            if self._turns:  # interrupted: calls that go on would be paid for and read by nobody
                self._books.stop()
            pool.shutdown(cancel_futures=True)
            self._books.close()

    def _wake(self, future: object) -> None:
        self._watched.discard(future)
        self._books.wake()
