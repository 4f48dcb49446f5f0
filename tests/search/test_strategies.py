"""What every strategy promises: replay is exact, seeds are obeyed, any order of results is fine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpro.errors import UserError

from .simulate import NAMES, Record, drive, failed, make, nothing, ok, random_world, replay

names = st.sampled_from(NAMES)
seeds = st.integers(0, 10_000)
parallels = st.integers(1, 6)


@given(names, seeds, st.integers(1, 120), parallels, st.integers(0, 200))
def test_replaying_any_prefix_continues_like_the_uninterrupted_search(
    name: str, seed: int, steps: int, parallel: int, cut: int
) -> None:
    world = random_world(seed)
    record: Record = []
    drive(make(name, seed), world, steps, parallel=parallel, shuffle=seed, record=record)
    prefix = record[: cut % (len(record) + 1)]

    rebuilt, reference = make(name, seed), make(name, seed)
    replay(rebuilt, prefix)
    replay(reference, record)
    rest = record[len(prefix) :]
    for kind, value in rest:
        if kind == "ask":
            assert rebuilt.ask(len(value)) == value
        else:
            rebuilt.tell(value)
    assert rebuilt.best() == reference.best()


@given(names, seeds, parallels)
def test_same_seed_same_asks(name: str, seed: int, parallel: int) -> None:
    world = random_world(seed)
    first = drive(make(name, seed), world, 60, parallel=parallel)
    assert drive(make(name, seed), world, 60, parallel=parallel) == first


@given(names, seeds, parallels, st.integers(0, 1000))
def test_results_in_any_order_give_the_best_of_what_was_told(
    name: str, seed: int, parallel: int, shuffle: int
) -> None:
    record: Record = []
    strategy = make(name, seed)
    drive(strategy, random_world(seed), 80, parallel=parallel, shuffle=shuffle, record=record)
    speeds = {t.node_id: t.speedup for kind, t in record if kind == "tell" and t.speedup}
    assert strategy.best() == (max(speeds, key=lambda n: speeds[n]) if speeds else None)


@given(names, seeds, parallels)
def test_a_node_whose_writer_is_exhausted_is_not_asked_again(
    name: str, seed: int, parallel: int
) -> None:
    record: Record = []
    world = random_world(seed, exhausted=0.4)
    drive(make(name, seed), world, 100, parallel=parallel, shuffle=seed, record=record)
    parent_of, exhausted = {}, set()
    for kind, value in record:
        if kind == "tell":
            if value.node_id is None:
                exhausted.add(parent_of[value.ask_id])
            continue
        for ask in value:
            assert ask.parent_id not in exhausted
            parent_of[ask.id] = ask.parent_id


@given(names, seeds)
def test_mode_fits_the_parent(name: str, seed: int) -> None:
    record: Record = []
    drive(make(name, seed), random_world(seed), 80, record=record)
    told = {t.node_id: t for kind, t in record if kind == "tell"}
    for ask in (a for kind, asks in record if kind == "ask" for a in asks):
        if ask.parent_id is None:
            assert ask.mode == "initial"
        else:
            assert ask.mode == ("optimize" if told[ask.parent_id].speedup else "repair")


@pytest.mark.parametrize("name", NAMES)
def test_an_exhausted_root_without_nodes_ends_the_search(name: str) -> None:
    strategy = make(name)
    (ask,) = strategy.ask()
    strategy.tell(nothing(ask.id))
    assert strategy.ask() == []
    assert strategy.best() is None


@pytest.mark.parametrize("name", NAMES)
def test_first_round_of_scouts_all_write_from_scratch(name: str) -> None:
    asks = make(name).ask(5)
    assert [a.id for a in asks] == [1, 2, 3, 4, 5]
    assert {a.mode for a in asks} == {"initial"}
    assert all(a.decision.text for a in asks)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_tells_are_refused_by_name(name: str) -> None:
    strategy = make(name)
    with pytest.raises(UserError, match="Ask 9 is not open"):
        strategy.tell(nothing(9))
    first, second = strategy.ask(2)
    strategy.tell(ok(first.id, "n0001", 1.5))
    with pytest.raises(UserError, match="already told"):
        strategy.tell(ok(first.id, "n0002", 1.5))
    with pytest.raises(UserError, match="n0001"):
        strategy.tell(failed(second.id, "n0001"))
    strategy.tell(failed(second.id, "n0002"))
    with pytest.raises(UserError, match="already handed out"):
        strategy.restore([first])
