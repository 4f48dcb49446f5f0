"""Pages over all runs, the use of machines, and a stored run against the same events folded."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from dashboard.web import SAMPLE, serving, store_run
from kernelpro.dashboard.web.stored_run import StoredRun
from kernelpro.schema.event import Event, Exchanged, NodeFinished, Remeasured
from kernelpro.schema.exchange import Exchange, Message
from kernelpro.schema.usage import Usage
from kernelpro.store.sqlite import RunStore
from kernelpro.testing.html_page import Page
from kernelpro.testing.sample_run import HOSTILE as HOSTILE_TEXT
from kernelpro.testing.sample_run import sample_events
from kernelpro.views.run import fold
from kernelpro.views.tools_view import tools_view
from kernelpro.views.utilisation_view import usage_of, usage_of_run

RUN = f"/runs/{SAMPLE}"
OTHER = "20260118-080000-other"
RAN_ON = {
    "executor": "local", "worker": "w0", "host": "<b>box</b>", "device": "cuda:0", "model": "H200",
    "uuid": "GPU-1", "attempt": 1, "seconds": 3.0, "queued_s": 1.5, "submitted_at": 0.0,
    "received_at": 4.5,
}  # fmt: skip


def placed(events: list[Event]) -> list[Event]:
    """``events`` with the place where each outcome was found, and paid calls of a model."""
    found: list[Event] = []
    for number, event in enumerate(events):
        if isinstance(event, NodeFinished | Remeasured) and event.outcome:
            ran_on = {**RAN_ON, "submitted_at": float(number)}
            environment = {**event.outcome.environment, "ran_on": ran_on}
            event = replace(event, outcome=replace(event.outcome, environment=environment))
        if isinstance(event, NodeFinished):
            event = replace(event, usage=(call(requests=2, seconds=9.0),))
        found.append(event)
    return found


def call(**changes: object) -> Usage:
    fields = {"role": "coder", "model": "m", "input_tokens": 100, "output_tokens": 20,
              "cost_usd": 0.5, "requests": 1}  # fmt: skip
    return Usage(**{**fields, **changes})  # type: ignore[arg-type]


def exchanged(ask_id: int) -> Exchanged:
    told = Message(author="user", text="go " + HOSTILE_TEXT)
    return Exchanged(exchange=Exchange(ask_id=ask_id, role="coder", system="", usage=call(),
                                       messages=(told,)))  # fmt: skip


@pytest.mark.parametrize("hostile", [False, True])
def test_a_stored_run_knows_what_its_folded_events_know(tmp_path, hostile):
    events = sample_events(nodes=30, hostile=hostile)
    events = [*placed(events), exchanged(3), exchanged(400), exchanged(400)]
    stored = StoredRun(store_run(tmp_path / "run", events))
    stored.refresh()
    run = fold(RunStore.open(tmp_path / "run").events())
    assert stored.run.facts == run.facts
    for name in ("children", "remeasured", "stopped", "started", "budget", "charged", "open_asks",
                 "unanswered", "best_id"):  # fmt: skip
        assert getattr(stored.run, name) == getattr(run, name), name
    assert stored.run.open_calls == run.open_calls
    assert [len(calls) for calls in run.open_calls.values()] == [1, 2]
    assert stored.run.usage() == run.usage()


def test_events_are_taken_in_page_by_page_and_only_once(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelpro.dashboard.web.stored_run.PAGE", 7)
    events = placed(sample_events(nodes=40))
    folder = store_run(tmp_path / "run", events[:-1])
    stored = StoredRun(folder)
    assert stored.refresh()
    assert not stored.refresh()
    with RunStore.open(folder, writable=True) as store:
        store.append(events[-1])
    assert stored.refresh()
    assert stored.run.facts == fold(events).facts
    assert stored.run.stopped is not None


def test_calls_without_an_attempt_count_in_the_meters(tmp_path):
    store_run(tmp_path / SAMPLE, [*sample_events(nodes=4, stopped=False)[:-1], exchanged(4)])
    with serving(tmp_path) as server:
        text = "".join(Page(server.get(f"{RUN}/parts/meters").text).text)
    assert "$0.50" in text
    assert "120" in text


@pytest.mark.parametrize("all_placed", [True, False])
def test_the_use_of_machines_is_the_same_from_store_and_records(tmp_path, all_placed):
    events = placed(sample_events(nodes=30))
    if not all_placed:
        events = [*events[:20], *sample_events(nodes=30)[20:]]
    with RunStore.open(store_run(tmp_path / "run", events)) as store:
        of_store, of_run = usage_of(store), usage_of_run(fold(events))
    assert of_run.placements == of_store.placements
    assert of_run.placements
    assert (of_run.unplaced == 0) == all_placed
    assert of_run.unplaced == of_store.unplaced
    assert of_run.model_calls > 10
    assert (of_store.model_calls, of_store.model_s) == (of_run.model_calls, of_run.model_s)


def test_machines_are_on_the_run_page_and_over_all_runs(tmp_path):
    store_run(tmp_path / SAMPLE, placed(sample_events(nodes=10)))
    store_run(tmp_path / OTHER, sample_events(nodes=6))
    with serving(tmp_path) as server:
        part = Page(server.get(f"{RUN}/parts/use").text)
        bare = server.get(f"/runs/{OTHER}/parts/use").text
        page = Page(server.get("/machines").text)
    for text in ("".join(part.text), "".join(page.text)):
        assert "cuda:0 GPU-1 on <b>box</b>, H200" in text
        assert "20 calls, 4.5 s on average" in text
        assert "100%" in text, "27 s of work were recorded within less than a second"
    assert "1.5 s on average, 1.5 s at most" in "".join(part.text)
    assert "b" not in {tag for tag, _ in (*part.elements, *page.elements)}
    assert "which device it ran on" in bare
    assert {a["href"] for a in page.all("a")} >= {RUN, f"/runs/{OTHER}"}


def test_tools_are_counted_over_all_runs(tmp_path):
    first, second = sample_events(nodes=40), sample_events(nodes=30, seed=5)
    store_run(tmp_path / SAMPLE, first)
    store_run(tmp_path / OTHER, second)
    with serving(tmp_path) as server:
        page = Page(server.get("/tools").text)
    rows = {row.tool: row for row in tools_view(fold(first))}
    more = {row.tool: row for row in tools_view(fold(second))}
    text = " ".join("".join(page.text).split())
    assert "Over 2 runs" in text
    for tool in {*rows, *more}:
        given = sum(found[tool].given for found in (rows, more) if tool in found)
        followed = sum(found[tool].followed for found in (rows, more) if tool in found)
        assert re.search(rf"{tool.replace('_', ' ')}\s*{given}\s*{followed}", text), tool


def test_the_distribution_is_a_file_and_says_when_there_is_none(tmp_path):
    store_run(tmp_path / SAMPLE, sample_events(nodes=8))
    with serving(tmp_path) as server:
        page = Page(server.get("/suite").text)
        assert "/suite/distribution.png" in {a["href"] for a in page.all("a")}
        svg = server.get("/suite/distribution.svg")
        assert svg.headers["content-type"] == "image/svg+xml"
        assert "geometric mean" in svg.text
        assert "var(--" not in svg.text
        assert server.get("/suite/distribution.png").text[1:4] == "PNG"
        assert server.get("/suite/distribution.exe").status == 404
    (tmp_path / "none").mkdir()
    with serving(tmp_path / "none") as server:
        lost = server.get("/suite/distribution.svg")
        assert lost.status == 404
        assert "accepted attempt" in lost.text
        assert all("No run" in server.get(path).text for path in ("/suite", "/tools", "/machines"))


def test_a_run_deleted_meanwhile_is_left_out_of_the_overviews(tmp_path, monkeypatch):
    import shutil

    from kernelpro.dashboard.web.library import Library

    store_run(tmp_path / SAMPLE, sample_events(nodes=8))
    gone = store_run(tmp_path / OTHER, sample_events(nodes=8))
    before = Library.summaries

    def deleted_after(library):
        found = before(library)
        shutil.rmtree(gone, ignore_errors=True)
        return found

    with serving(tmp_path) as server:
        monkeypatch.setattr(Library, "summaries", deleted_after)
        answer = server.get("/suite")
    assert answer.status == 200
    assert f'href="{RUN}"' in answer.text
    assert OTHER not in answer.text


def test_the_tree_says_which_events_it_shows(tmp_path):
    events = sample_events(nodes=8)
    store_run(tmp_path / SAMPLE, events)
    with serving(tmp_path) as server:
        assert json.loads(server.get(f"{RUN}/tree.json").text)["seq"] == len(events)
