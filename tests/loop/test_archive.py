"""Old attempts leave memory and come back from the store unchanged."""

from __future__ import annotations

import pytest

from kernelpro.loop.archive import SIBLINGS, Archive
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import Event, NodeFinished
from kernelpro.schema.search import Tell

from .simulated import accepted


def node(number: int, parent_id: str | None = None, source: str | None = None) -> NodeFinished:
    source = source or f"source {number}"
    candidate = Candidate(
        id=f"n{number}", parent_id=parent_id, source_hash=f"hash of {source}",
        proposal=Proposal(source=source, mode="initial", title=""),
    )  # fmt: skip
    tell = Tell(ask_id=number, node_id=f"n{number}")
    return NodeFinished(tell=tell, candidate=candidate, outcome=accepted(1.0, source))


def test_eviction_and_return() -> None:
    events: dict[int, Event] = {n: node(n) for n in range(1, 50)}
    read: list[int] = []

    def read_event(seq: int) -> Event:
        read.append(seq)
        return events[seq]

    archive = Archive(read_event, capacity=3)
    for seq, event in events.items():
        assert isinstance(event, NodeFinished)
        archive.add(seq, event)
    assert len(archive) == 49
    assert archive.attempt("n49").candidate == events[49].candidate  # type: ignore[union-attr]
    assert read == []
    assert archive.attempt("n1").candidate.id == "n1"
    assert archive.attempt("n1").candidate.id == "n1"
    assert read == [1], "read once, then kept"
    with pytest.raises(KeyError):
        archive.attempt("n999")


def test_siblings_are_the_latest_oldest_first() -> None:
    archive = Archive({}.__getitem__)
    for number in range(1, 50):
        archive.add(number, node(number, "n0" if number > 5 else None))
    assert [a.candidate.id for a in archive.siblings(None)] == ["n1", "n2", "n3", "n4", "n5"]
    below = [a.candidate.id for a in archive.siblings("n0")]
    assert below == [f"n{n}" for n in range(50 - SIBLINGS, 50)]
    assert archive.siblings("n7") == ()


def test_the_first_node_with_a_source_is_remembered() -> None:
    archive = Archive({}.__getitem__)
    archive.add(1, node(1, source="same"))
    archive.add(2, node(2, source="same"))
    archive.add(3, NodeFinished(tell=Tell(ask_id=3, node_id=None), candidate=None))
    assert archive.with_source("hash of same") == "n1"
    assert archive.with_source("hash of other") is None
    assert archive.source_hashes() == {"hash of same"}
    assert len(archive) == 2


def test_what_was_tried_by_then_is_a_set_that_later_sources_do_not_change() -> None:
    archive = Archive({}.__getitem__)
    for number in (1, 2, 3):
        archive.add(number, node(number))
    before = archive.source_hashes()
    assert archive.source_hashes() == before
    archive.add(4, node(4))
    archive.add(5, node(4))
    hashes = [f"hash of source {n}" for n in (1, 2, 3)]
    assert before == set(hashes) and list(before) == hashes and len(before) == 3
    assert "hash of source 4" not in before and "hash of source 4" in archive.source_hashes()
    assert 4 not in before
    assert before | {"x"} == {*hashes, "x"} and archive.source_hashes() - before == {
        "hash of source 4"
    }
    assert not Archive({}.__getitem__).source_hashes()
