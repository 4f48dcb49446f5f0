"""Whatever JSON an event carries comes back unchanged, in the row or through blobs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.errors import StoreError
from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.search import Tell
from kernelpro.store.rows import blob_references, from_row, link, to_row
from kernelpro.text import content_hash

from .samples import finished, profile, started

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
keys = texts | st.sampled_from(["$blob", "$json", "$", "$$blob", "source"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False,
    allow_infinity=False) | texts | st.builds(lambda t: t * 1500, texts),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


class Blobs(dict[str, bytes]):
    def put(self, data: bytes | str) -> str:
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        self[content_hash(raw)] = raw
        return content_hash(raw)


def node(knobs: dict[str, Any], title: str = "t") -> NodeFinished:
    proposal = Proposal(source="x", mode="initial", title=title, knobs=knobs)
    candidate = Candidate(id="n1", parent_id=None, source_hash=content_hash("x"), proposal=proposal)
    return NodeFinished(tell=Tell(ask_id=1, node_id="n1"), candidate=candidate)


@given(st.dictionaries(keys, values, max_size=4))
def test_round_trip(knobs: dict[str, Any]) -> None:
    blobs = Blobs()
    event = node(knobs)
    row = to_row(event, blobs.put)
    assert from_row(row.kind, row.payload, blobs.__getitem__) == event
    assert set(blob_references(row.payload)) == set(blobs)


def test_large_parts_leave_the_row() -> None:
    blobs = Blobs()
    event = finished(1, profile=profile())
    row = to_row(event, blobs.put)
    assert from_row(row.kind, row.payload, blobs.__getitem__) == event
    assert len(blobs) == 2
    assert event.candidate is not None
    assert event.candidate.source_hash in blobs
    assert (row.node_id, row.status, row.speedup) == ("n0001", "ok", 1.1)


@given(st.dictionaries(keys, values, max_size=4), st.booleans(), texts)
def test_one_pass_decodes_as_the_parts_one_by_one(
    knobs: dict[str, Any], profiles: bool, source: str
) -> None:
    """Texts that look like tags stay texts, with and without the profile."""
    blobs = Blobs()
    source += '{"$blob":"sha256:0"} \\"$ \U0001f600 \u2028'
    event = dataclasses.replace(finished(1, source=source, profile=profile()), ledger=(knobs,))
    row = to_row(event, blobs.put)
    expected = event if profiles else dataclasses.replace(event, profile=None)
    assert from_row(row.kind, row.payload, blobs.__getitem__, profiles=profiles) == expected
    spaced = json.dumps(json.loads(row.payload))  # as no writer of ours does it: part by part
    assert from_row(row.kind, spaced, blobs.__getitem__, profiles=profiles) == expected


def test_a_profile_that_is_not_wanted_is_not_read() -> None:
    blobs = Blobs()
    row = to_row(finished(1, profile=profile()), blobs.put)
    read: list[str] = []

    def get(tagged: str) -> bytes:
        read.append(tagged)
        return blobs[tagged]

    event = from_row(row.kind, row.payload, get, profiles=False)
    assert isinstance(event, NodeFinished) and event.candidate is not None
    assert event.profile is None
    assert read == [event.candidate.source_hash]


def test_lone_surrogates_from_program_output_are_replaced() -> None:
    blobs = Blobs()
    for title in ("bad \udcff byte", "bad \udcff byte" * 900):
        row = to_row(node({"\udcff": title}, title), blobs.put)
        event = from_row(row.kind, row.payload, blobs.__getitem__)
        assert isinstance(event, NodeFinished) and event.candidate is not None
        assert "\udcff" not in event.candidate.proposal.title
        assert event.candidate.proposal.title.startswith("bad ")


def test_damage_and_unknown_kinds_are_store_errors() -> None:
    row = to_row(started(), Blobs().put)
    with pytest.raises(StoreError, match="newer"):
        from_row("dreamt", row.payload, dict[str, bytes]().__getitem__)
    with pytest.raises(StoreError, match="damaged"):
        from_row("stopped", "{", dict[str, bytes]().__getitem__)
    with pytest.raises(StoreError, match="damaged"):
        from_row(
            "stopped", '{"reason": "boredom", "best_id": null}', dict[str, bytes]().__getitem__
        )


def test_a_link_depends_on_all_of_its_past() -> None:
    row = to_row(node({}), Blobs().put)
    assert len({link("", "1", row), link("", "2", row), link("a", "1", row)}) == 3
