"""Checks a run against itself: database, hash chain, blobs, and the story the events tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelpro.errors import StoreError
from kernelpro.schema.event import Asked, Event, NodeFinished, Remeasured, RunStarted
from kernelpro.store.rows import Row, blob_references, from_row, link
from kernelpro.text import content_hash

if TYPE_CHECKING:
    from kernelpro.store.sqlite import RunStore, StoredRow


def verify(store: RunStore) -> list[str]:
    """Everything that is wrong, one line each, in the order of the events; empty = sound."""
    try:
        problems = [
            f"database: {line}" for (line,) in store.query("PRAGMA integrity_check") if line != "ok"
        ]
        chain, expected_seq, story = "", 1, _Story()
        for stored in store.stored():
            where = f"event {stored.seq}"
            if stored.seq != expected_seq:
                problems.append(f"{where}: events {expected_seq} to {stored.seq - 1} are missing")
            if link(chain, stored.at, stored.row) != stored.chain:
                problems.append(f"{where}: was changed after it was written (hash chain broken)")
            chain, expected_seq = stored.chain, stored.seq + 1
            problems += [f"{where}: {p}" for p in _event_problems(store, stored, story)]
    except StoreError as error:
        return [str(error)]
    if expected_seq == 1:
        problems.append("the run holds no events")
    return problems


def _event_problems(store: RunStore, stored: StoredRow, story: _Story) -> list[str]:
    problems: list[str] = []
    try:
        references = list(blob_references(stored.row.payload))
    except ValueError as error:
        return [f"its record is not JSON: {error}"]
    for tagged in references:
        problems += _blob_problems(store, tagged)
    if problems:
        return problems
    try:
        event = from_row(stored.row.kind, stored.row.payload, store.blobs.get)
    except StoreError as error:
        return [str(error)]
    if isinstance(event, NodeFinished):
        problems += _column_problems(stored.row, event)
        exchange = event.candidate.proposal.exchange if event.candidate else None
        problems += _blob_problems(store, exchange) if exchange else []
    return problems + story.problems(event)


def _blob_problems(store: RunStore, tagged: str) -> list[str]:
    try:
        store.blobs.get(tagged)
    except StoreError as error:
        return [str(error)]
    return []


def _column_problems(row: Row, event: NodeFinished) -> list[str]:
    outcome = event.outcome
    expected = (
        event.tell.node_id,
        outcome.status.value if outcome else None,
        outcome.speedup if outcome else None,
    )
    if (row.node_id, row.status, row.speedup) == expected:
        return []
    return [f"its columns say {row.node_id, row.status, row.speedup}, its record {expected}"]


class _Story:
    """What must hold between events: asks before tells, parents before children, true hashes."""

    def __init__(self) -> None:
        self._started = False
        self._open: dict[int, str | None] = {}
        self._nodes: set[str] = set()

    def problems(self, event: Event) -> list[str]:
        """What is wrong with ``event`` coming next."""
        first, self._started = not self._started, True
        if first != isinstance(event, RunStarted):
            return ["the run must begin with its start, once"]
        if isinstance(event, Asked):
            return self._asked(event)
        if isinstance(event, NodeFinished):
            return self._finished(event)
        if isinstance(event, Remeasured) and event.node_id not in self._nodes:
            return [f"measures unknown node {event.node_id} again"]
        return []

    def _asked(self, event: Asked) -> list[str]:
        problems = []
        for ask in event.asks:
            if ask.parent_id is not None and ask.parent_id not in self._nodes:
                problems.append(f"ask {ask.id} names unknown parent {ask.parent_id}")
            self._open[ask.id] = ask.parent_id
        return problems

    def _finished(self, event: NodeFinished) -> list[str]:
        problems = []
        if event.tell.ask_id not in self._open:
            problems.append(f"answers ask {event.tell.ask_id}, which is not open")
        parent_id = self._open.pop(event.tell.ask_id, None)
        candidate = event.candidate
        if candidate is None:
            return problems
        self._nodes.add(candidate.id)
        if candidate.id != event.tell.node_id or candidate.parent_id != parent_id:
            problems.append(f"candidate {candidate.id} does not fit its ask")
        if content_hash(candidate.proposal.source) != candidate.source_hash:
            problems.append(f"the source of {candidate.id} does not have its recorded hash")
        if event.outcome is None:
            problems.append(f"candidate {candidate.id} has no outcome")
        elif event.outcome.source_hash not in {"", candidate.source_hash}:
            problems.append(f"the outcome of {candidate.id} is that of another source")
        return problems
