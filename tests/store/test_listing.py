"""Run folders are summed up, whatever state they are in."""

from __future__ import annotations

from pathlib import Path

from kernelpro.schema.event import NodeFinished, Remeasured, Resumed
from kernelpro.store.listing import list_runs, summarise
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.sample_run import sample_events

from .samples import short_run, started


def test_states(tmp_path: Path) -> None:
    for name, count in (("a-stopped", 9), ("b-killed", 5)):
        with RunStore.create(tmp_path / name) as store:
            for event in short_run()[:count]:
                store.append(event)
    (tmp_path / "c-damaged").mkdir()
    (tmp_path / "c-damaged" / "run.sqlite").write_bytes(b"junk" * 999)
    RunStore.create(tmp_path / "d-empty").close()
    (tmp_path / "not-a-run").mkdir()
    running = RunStore.create(tmp_path / "e-running")
    running.append(started())

    runs = {r.folder.name: r for r in list_runs(tmp_path)}
    running.close()
    assert list(runs) == ["a-stopped", "b-killed", "c-damaged", "d-empty", "e-running"]
    stopped = runs["a-stopped"]
    assert (stopped.state, stopped.stop_reason) == ("stopped", "budget_evaluations")
    assert (stopped.nodes, stopped.accepted, stopped.best_speedup) == (3, 3, 1.3)
    assert (stopped.problem, stopped.writer, stopped.search) == ("relu", "playbook", "mcts")
    assert (runs["b-killed"].state, runs["b-killed"].nodes) == ("unfinished", 2)
    assert runs["c-damaged"].state == "damaged"
    assert "damaged" in (runs["c-damaged"].error or "")
    assert "no start" in (runs["d-empty"].error or "")
    assert (runs["e-running"].state, runs["e-running"].best_speedup) == ("running", None)


def test_no_folder_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "nowhere") == []


def test_the_second_measurement_counts_until_the_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    *events, stopped = sample_events(nodes=8)
    before = max(e.outcome.speedup or 0.0 for e in events if isinstance(e, NodeFinished))
    again = next(e.outcome.speedup for e in events if isinstance(e, Remeasured))
    with RunStore.create(folder) as store:
        for event in events[:-1]:
            store.append(event)
        assert summarise(folder).best_speedup == before
        store.append(events[-1])
        store.append(stopped)
        assert summarise(folder).best_speedup == again != before
        store.append(Resumed(at="2026-01-15T10:00:00+00:00"))
        assert summarise(folder).best_speedup == before
