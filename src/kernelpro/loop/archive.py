"""Attempts of a run by node id: recent ones in memory, older ones read back from the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from kernelpro.schema.event import Event, NodeFinished
from kernelpro.schema.proposal_request import Attempt

CAPACITY = 2_000
"""Attempts kept in memory (chosen: about 50 MB at 25 KB each)."""
SIBLINGS = 32
"""Most recent siblings shown to a writer (chosen: a prompt has no room for more)."""


class Archive:
    """Every candidate of the run with its outcome, found by id, by parent or by source."""

    def __init__(self, read_event: Callable[[int], Event], capacity: int = CAPACITY) -> None:
        self._read_event = read_event
        self._capacity = capacity
        self._recent: OrderedDict[str, Attempt] = OrderedDict()
        self._seq: dict[str, int] = {}
        self._children: dict[str | None, list[str]] = {}
        self._by_source: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._seq)

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._seq

    def add(self, seq: int, event: NodeFinished) -> None:
        """Take in a node recorded as event ``seq``; one without a candidate is ignored."""
        candidate = event.candidate
        if candidate is None:
            return
        self._seq[candidate.id] = seq
        self._children.setdefault(candidate.parent_id, []).append(candidate.id)
        self._by_source.setdefault(candidate.source_hash, candidate.id)
        self._keep(candidate.id, _attempt(event))

    def attempt(self, node_id: str) -> Attempt:
        """The attempt of node ``node_id``; ``KeyError`` if there is none."""
        if node_id not in self._recent:
            event = self._read_event(self._seq[node_id])
            assert isinstance(event, NodeFinished)
            self._keep(node_id, _attempt(event))
        self._recent.move_to_end(node_id)
        return self._recent[node_id]

    def siblings(self, parent_id: str | None) -> tuple[Attempt, ...]:
        """The latest children of ``parent_id``, oldest first."""
        return tuple(self.attempt(i) for i in self._children.get(parent_id, [])[-SIBLINGS:])

    def with_source(self, source_hash: str) -> str | None:
        """The first node with this source, if any."""
        return self._by_source.get(source_hash)

    def source_hashes(self) -> frozenset[str]:
        """Of every candidate so far."""
        return frozenset(self._by_source)

    def _keep(self, node_id: str, attempt: Attempt) -> None:
        self._recent[node_id] = attempt
        if len(self._recent) > self._capacity:
            self._recent.popitem(last=False)


def _attempt(event: NodeFinished) -> Attempt:
    assert event.candidate is not None and event.outcome is not None
    return Attempt(
        candidate=event.candidate,
        outcome=event.outcome,
        guidance=event.guidance,
        diagnosis=event.diagnosis,
    )
