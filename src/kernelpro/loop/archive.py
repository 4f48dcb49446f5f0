"""Attempts of a run by node id: recent ones in memory, older ones read back from the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import islice
from typing import Any

from kernelpro.schema.event import Event, NodeFinished
from kernelpro.schema.proposal_request import Attempt

CAPACITY = 2_000
"""Attempts kept in memory (chosen: about 50 MB at 25 KB each)."""
SIBLINGS = 32
"""Most recent siblings shown to a writer (chosen: a prompt has no room for more)."""


class Tried(Set[str]):
    """Hashes of the sources that were there when it was made; later ones do not show.

    A view of the archive's own tables, which only grow: it costs the same for any number of
    sources, so that a long run can show every request those before it.
    """

    def __init__(self, sources: list[str], number: dict[str, int]) -> None:
        self._sources = sources
        self._number = number
        """Source -> its index in ``sources``."""
        self._count = len(sources)

    def __contains__(self, source_hash: object) -> bool:
        number = self._number.get(source_hash) if isinstance(source_hash, str) else None
        return number is not None and number < self._count

    def __iter__(self) -> Iterator[str]:
        return islice(self._sources, self._count)

    def __len__(self) -> int:
        return self._count

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> frozenset[Any]:
        """What union and difference make."""
        return frozenset(it)


class Archive:
    """Every candidate of the run with its outcome, found by id, by parent or by source."""

    def __init__(self, read_event: Callable[[int], Event], capacity: int = CAPACITY) -> None:
        self._read_event = read_event
        self._capacity = capacity
        self._recent: OrderedDict[str, Attempt] = OrderedDict()
        self._seq: dict[str, int] = {}
        self._children: dict[str | None, list[str]] = {}
        self._sources: list[str] = []
        """Hashes of distinct sources, in order of arrival."""
        self._source_number: dict[str, int] = {}
        self._first_with: list[str] = []
        """Node ids that brought them, in the same order."""

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
        if candidate.source_hash not in self._source_number:
            self._source_number[candidate.source_hash] = len(self._sources)
            self._first_with.append(candidate.id)
            self._sources.append(candidate.source_hash)
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
        number = self._source_number.get(source_hash)
        return None if number is None else self._first_with[number]

    def source_hashes(self) -> Tried:
        """Of every candidate so far."""
        return Tried(self._sources, self._source_number)

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
