"""The sample run stands in for the store, so it must be one the store could hold."""

from __future__ import annotations

import pytest

from kernelpro.schema.codec import from_jsonable, to_jsonable
from kernelpro.schema.event import EVENT_TYPES, NodeFinished
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.sample_run import sample_events


@pytest.mark.parametrize("hostile", [False, True])
def test_every_event_survives_json(hostile):
    for event in sample_events(hostile=hostile):
        assert from_jsonable(EVENT_TYPES[event.kind], to_jsonable(event)) == event


def test_same_seed_gives_the_same_run():
    assert sample_events(seed=3) == sample_events(seed=3)
    assert sample_events(seed=3) != sample_events(seed=4)


def test_the_store_takes_it_and_finds_it_sound(tmp_path):
    events = sample_events(nodes=12)
    with RunStore.create(tmp_path / "run") as store:
        for event in events:
            store.append(event)
        assert store.verify() == []
    with RunStore.open(tmp_path / "run") as store:
        assert list(store.events()) == events


def test_it_has_every_kind_of_end():
    statuses = {
        e.outcome.status.value
        for e in sample_events(nodes=200)
        if isinstance(e, NodeFinished) and e.outcome
    }
    assert {"ok", "build_error", "wrong_result", "timeout", "cheating", "rejected"} <= statuses
