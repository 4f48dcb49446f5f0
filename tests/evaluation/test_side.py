"""Waiting for others to rest: as long as one is at work, and no longer."""

from __future__ import annotations

import time

import pytest
from scripted_subject import ScriptedSubject

from kernelpro.evaluation import side as sides
from kernelpro.evaluation.side import Side, settle


class Looked(ScriptedSubject):
    """Answers ``at_work`` from a list, then ``False``."""

    def __init__(self, *answers: bool | None) -> None:
        super().__init__(lambda number, call, new: 1.0)
        self.answers = list(answers)
        self.looks = 0

    def at_work(self) -> bool | None:
        self.looks += 1
        return self.answers.pop(0) if self.answers else False


@pytest.fixture(autouse=True)
def nothing_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides.proctree, "others_at_work", lambda: False)


def test_sides_at_rest_are_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "SPIN_S", 60.0)  # a busy machine may take long for two looks
    subject = Looked()
    settle([Side(name="a", subject=subject)])
    assert subject.looks == sides.IDLE_LOOKS


def test_one_at_work_in_between_starts_the_count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "SPIN_S", 60.0)
    subject = Looked(True, False, None, False, False)
    settle([Side(name="a", subject=subject)])
    assert subject.looks == 5


def test_who_never_rests_is_waited_for_as_long_as_a_team_spins() -> None:
    subject = Looked(*[True] * 10_000)
    started = time.perf_counter()
    settle([Side(name="a", subject=Looked()), Side(name="b", subject=subject)])
    assert time.perf_counter() - started >= sides.SPIN_S


def test_a_device_with_a_clock_of_its_own_is_not_waited_for() -> None:
    subject = Looked()
    settle([Side(name="a", subject=subject, timer="cuda_event")])
    assert subject.looks == 0
