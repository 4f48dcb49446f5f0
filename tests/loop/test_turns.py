"""A run driven from outside, one turn at a time, in any number of processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.errors import UserError
from kernelpro.loop.assemble import writer_of
from kernelpro.loop.run import create_run, opened, read_result, start_run
from kernelpro.loop.turns import Given, ask, conclude, tell, tell_all
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.outcome import Status
from kernelpro.store.sqlite import RunStore

from .simulated import PROBLEM, SOURCE, accepted, assembler, prepare

CONFIG = RunConfig(device="cpu", writer="external", budget=Budget(evaluations=3))
ASSEMBLE = assembler(judge=lambda source: accepted(2.0, source), writer=writer_of(CONFIG))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return create_run(PROBLEM, CONFIG, runs_root=tmp_path, cache_root=tmp_path, prepare=prepare)


def answer(folder: Path, note: str | None, ask_id: int | None = None) -> Status | None:
    source = None if note is None else SOURCE.format(note=note)
    event = tell(folder, source, cache_root=folder, ask_id=ask_id, assemble=ASSEMBLE)
    return event.outcome.status if event.outcome else None


def test_ask_tell_conclude(folder: Path) -> None:
    (request,) = ask(folder)
    assert (request.ask.id, request.ask.mode) == (1, "initial")
    assert ask(folder) == [request], "asking again changes nothing"
    assert answer(folder, "first") is Status.OK
    (request,) = ask(folder)
    assert request.best is not None
    assert request.best.guidance is not None
    rejected = tell(folder, "def (", cache_root=folder, assemble=ASSEMBLE).outcome
    assert rejected is not None
    assert rejected.status is Status.REJECTED
    ask(folder)
    assert answer(folder, "third") is Status.OK
    assert ask(folder) == [], "the budget is spent"
    result = conclude(folder, cache_root=folder, assemble=ASSEMBLE)
    assert (result.stop_reason, result.evaluations, result.speedup) == (
        "budget_evaluations", 3, 2.0,
    )  # fmt: skip
    assert read_result(folder) == result
    assert conclude(folder, cache_root=folder, assemble=ASSEMBLE) == result
    with pytest.raises(UserError, match="has ended"):
        answer(folder, "too late")
    with RunStore.open(folder) as store:
        assert store.verify() == []


def test_several_open_requests_are_told_by_number(folder: Path) -> None:
    assert [r.ask.id for r in ask(folder, 2)] == [1, 2]
    assert answer(folder, "b", ask_id=2) is Status.OK
    assert answer(folder, "b", ask_id=1) is Status.OK, "a repeat takes over the outcome"
    assert read_result(folder).duplicates == 1


def test_a_writer_may_choose_what_to_go_on_from(folder: Path) -> None:
    ask(folder)
    assert answer(folder, "first") is Status.OK
    (searched,) = ask(folder)
    chosen = ask(folder, 2, parent_id="n0001")
    assert [(r.ask.id, r.ask.parent_id, r.ask.mode) for r in chosen][-1:] == [
        (3, "n0001", "optimize")
    ]
    assert all(r.parent is not None and r.parent.guidance is not None for r in chosen)
    assert ask(folder, 2, parent_id="n0001") == chosen, "asking again changes nothing"
    assert len(ask(folder, 9)) == 2, "never more than the evaluations left"
    assert searched in ask(folder)
    assert answer(folder, "second", ask_id=3) is Status.OK
    with RunStore.open(folder) as store:
        assert store.verify() == []
    assert read_result(folder).evaluations == 2
    with pytest.raises(UserError, match="no attempt 'n0099'"):
        ask(folder, parent_id="n0099")


def test_answers_told_together_are_recorded_in_the_order_given(folder: Path) -> None:
    ask(folder, 3)
    texts = {3: "a", 1: "b", 2: "a"}
    given = [
        Given(number, SOURCE.format(note=note), f"t{number}") for number, note in texts.items()
    ]
    with opened(folder, cache_root=folder, assemble=ASSEMBLE) as controller:
        with pytest.raises(UserError, match="Request 7 is not open"):
            tell_all(controller, [*given, Given(7, "x = 1")])
        assert read_result(folder).evaluations == 0, "all or none"
        nodes = tell_all(controller, given)
    assert [(n.tell.ask_id, n.candidate and n.candidate.id) for n in nodes] == [
        (3, "n0001"), (1, "n0002"), (2, "n0003"),
    ]  # fmt: skip
    assert nodes[2].duplicate_of == "n0001"
    assert [n.candidate and n.candidate.proposal.title for n in nodes] == ["t3", "t1", "t2"]
    assert (read_result(folder).evaluations, read_result(folder).duplicates) == (2, 1)


def test_a_reply_without_a_candidate_leaves_the_request_open(folder: Path) -> None:
    ask(folder)
    reply = "I would use\n```cpp\nint x;\n```\n"
    with pytest.raises(UserError, match=r"request 1 cannot be used.*stays open"):
        tell(folder, reply, cache_root=folder, assemble=ASSEMBLE)
    source = SOURCE.format(note="now")
    event = tell(folder, f"Title: whole\n```python\n{source}```\n", cache_root=folder,
                 assemble=ASSEMBLE)  # fmt: skip
    assert event.candidate is not None
    assert event.candidate.proposal.title == "whole"


def test_wrong_turns_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ask first"):
        answer(folder, "a")
    ask(folder)
    with pytest.raises(UserError, match=r"Request 7 is not open\. Open: 1"):
        answer(folder, "a", ask_id=7)
    assert answer(folder, None) is None
    result = conclude(folder, cache_root=folder, assemble=ASSEMBLE)
    assert (result.stop_reason, result.keep_eager) == ("exhausted", True)
    with pytest.raises(UserError, match="kernelpro ask RUN"):
        start_run(PROBLEM, CONFIG, runs_root=tmp_path, cache_root=tmp_path, prepare=prepare)
