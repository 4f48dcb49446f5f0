"""Greedy follows the best, repairs the furthest failure, and restarts after failures in a row."""

from __future__ import annotations

from kernelpro.schema.outcome import Stage, Status

from .simulate import failed, make, nothing, ok


def test_repairs_the_failure_that_got_furthest_then_improves_the_best_success() -> None:
    search = make("greedy", restart_failures=10)
    first, second = search.ask(2)
    search.tell(failed(first.id, "far", Status.WRONG_RESULT, Stage.VERIFY))
    search.tell(failed(second.id, "near", Status.BUILD_ERROR, Stage.BUILD))
    (repair,) = search.ask()
    assert (repair.parent_id, repair.mode) == ("far", "repair")
    search.tell(ok(repair.id, "slow", 0.9))
    (ask,) = search.ask()
    assert (ask.parent_id, ask.mode) == ("slow", "optimize")
    search.tell(ok(ask.id, "fast", 1.4))
    assert search.ask()[0].parent_id == "fast"
    assert search.best() == "fast"


def test_restarts_after_failures_in_a_row() -> None:
    search = make("greedy", restart_failures=2)
    parents = []
    for i in range(6):
        (ask,) = search.ask()
        parents.append(ask.parent_id)
        search.tell(failed(ask.id, f"n{i}"))
    assert parents == [None, "n0", None, "n0", None, "n0"]


def test_an_exhausted_best_gives_way_to_the_next() -> None:
    search = make("greedy")
    a, b = search.ask(2)
    search.tell(ok(a.id, "a", 2.0))
    search.tell(ok(b.id, "b", 1.5))
    search.tell(nothing(search.ask()[0].id))
    assert search.ask()[0].parent_id == "b"
