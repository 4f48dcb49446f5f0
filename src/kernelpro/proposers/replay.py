"""Replays a recorded run without key or network: every request gets the answer it got then.

Where a model answered, its recorded words go through today's parser against the version it was
shown; where a person, an agent or the playbook did, the recorded file is the answer. Evaluation
is not replayed: the referee judges anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from kernelpro.errors import UserError
from kernelpro.proposers.base import Books
from kernelpro.proposers.llm.recorded import RecordedModel
from kernelpro.proposers.llm.settings import Settings
from kernelpro.proposers.llm.writer import LlmWriter
from kernelpro.schema.candidate import Proposal
from kernelpro.schema.event import Asked, Event, Exchanged, NodeFinished
from kernelpro.schema.exchange import Exchange
from kernelpro.schema.proposal_request import Attempt, ProposalRequest
from kernelpro.schema.search import Ask
from kernelpro.schema.usage import Usage
from kernelpro.store.export import open_text, read_jsonl
from kernelpro.store.sqlite import DATABASE, RunStore


class ReplayWriter:
    """Implements ``PaidWriter``, so that the replayed exchanges are on record again."""

    def __init__(self, recording: str) -> None:
        self._recording = _Recording(_events(Path(recording)))
        self._books: Books | None = None

    def attach(self, books: Books) -> None:
        """Record the replayed exchanges in ``books``."""
        self._books = books

    def usage(self) -> tuple[Usage, ...]:
        """Nothing is spent."""
        return ()

    def propose(self, request: ProposalRequest) -> Proposal | None:
        """The answer that the request of the same number got; None beyond the recording."""
        then = self._recording.nodes.get(request.ask.id)
        if then is None:
            return None
        exchanges = self._recording.exchanges.get(request.ask.id, [])
        if any(e.role == "coder" and e.reply is not None for e in exchanges):
            return self._reread(request, exchanges)
        return None if then.candidate is None else then.candidate.proposal

    def _reread(self, request: ProposalRequest, exchanges: list[Exchange]) -> Proposal | None:
        """The recorded replies through the parser, as an answer to what was asked then."""
        coder = [e for e in exchanges if e.role == "coder"]
        model = RecordedModel(coder[0].usage.model, coder)
        calls = sum(e.reply is not None for e in coder)
        writer = LlmWriter(
            {"initial": model, "repair": model, "optimize": model},
            settings=Settings(retries=calls - 1),
        )
        assert self._books is not None
        writer.attach(self._books)
        ask = self._recording.asks[request.ask.id]
        parent = self._recording.attempt(ask.parent_id)
        return writer.propose(
            dataclasses.replace(
                request, ask=dataclasses.replace(ask, id=request.ask.id), parent=parent
            )
        )


class _Recording:
    """Asks, exchanges and results of the recorded run, by number of the ask."""

    def __init__(self, events: Iterator[Event]) -> None:
        self.asks: dict[int, Ask] = {}
        self.exchanges: dict[int, list[Exchange]] = {}
        self.nodes: dict[int, NodeFinished] = {}
        for event in events:
            if isinstance(event, Asked):
                self.asks |= {ask.id: ask for ask in event.asks}
            elif isinstance(event, Exchanged):
                self.exchanges.setdefault(event.exchange.ask_id, []).append(event.exchange)
            elif isinstance(event, NodeFinished):
                self.nodes[event.tell.ask_id] = event

    def attempt(self, node_id: str | None) -> Attempt | None:
        """The attempt that was node ``node_id`` then."""
        for event in self.nodes.values():
            candidate, outcome = event.candidate, event.outcome
            if candidate is not None and outcome is not None and candidate.id == node_id:
                return Attempt(candidate=candidate, outcome=outcome, guidance=event.guidance,
                               diagnosis=event.diagnosis)  # fmt: skip
        return None


def _events(recording: Path) -> Iterator[Event]:
    """The events of a run folder, or of a file written by ``kernelpro runs export``."""
    if (recording / DATABASE).is_file():
        with RunStore.open(recording) as store:
            yield from store.events()
        return
    if not recording.is_file():
        raise UserError(
            f"{recording} is neither a run folder nor a file from kernelpro runs export"
        )
    with open_text(recording, "r") as stream:
        yield from read_jsonl(stream)
