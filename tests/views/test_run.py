"""Folding events: the same facts live, after a resume, and in any front end."""

from __future__ import annotations

import itertools

from kernelpro.schema.config import Budget
from kernelpro.schema.event import Remeasured, Resumed, Stopped
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold


def test_best_before_the_end_is_the_fastest_of_the_search():
    run = fold(sample_events(stopped=False))
    fastest = max(run.nodes, key=lambda n: run.speedup(n) or 0)
    assert run.speedup(run.best_id) == run.speedup(fastest)


def test_the_second_measurement_decides_the_winner():
    events = [e for e in sample_events() if not isinstance(e, Remeasured | Stopped)]
    run = fold(events)
    first = run.best_id
    accepted = [n for n in run.nodes if run.speedup(n) and n != first]
    second = max(accepted, key=run.speedup)
    run.add(Remeasured(node_id=first, outcome=run.nodes[accepted[0]].outcome))
    run.add(Remeasured(node_id=second, outcome=run.nodes[second].outcome))
    run.add(Stopped(reason="exhausted", best_id=first))
    assert run.best_id == second
    assert run.speedup(first) == run.nodes[accepted[0]].outcome.speedup


def test_resuming_reopens_the_run_with_its_new_budget():
    run = fold(sample_events())
    run.add(Resumed(at="2026-01-16T00:00:00+00:00", budget=Budget(evaluations=99)))
    assert run.stopped is None
    assert run.remeasured == {}
    assert run.budget.evaluations == 99


def test_a_path_runs_from_a_first_version_to_the_node():
    run = fold(sample_events())
    for node_id in run.nodes:
        path = run.path(node_id)
        assert path[-1] == node_id
        assert run.nodes[path[0]].candidate.parent_id is None
        assert all(run.parent_of(b) == a for a, b in itertools.pairwise(path))


def test_repeats_are_not_charged():
    run = fold(sample_events())
    repeats = [n for n in run.nodes.values() if n.duplicate_of]
    assert repeats
    assert run.charged == len(run.nodes) - len(repeats)
