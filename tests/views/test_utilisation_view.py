"""How well machines were used, from what outcomes say about where they were found."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpro.schema.candidate import Candidate, Proposal
from kernelpro.schema.event import NodeFinished, Remeasured
from kernelpro.schema.outcome import Outcome, Stage, Status
from kernelpro.schema.search import Tell
from kernelpro.schema.usage import Usage as Calls
from kernelpro.store.sqlite import RunStore
from kernelpro.views.utilisation_view import Placement, Usage, usage_of, utilisation_view


def placement(**changes: object) -> Placement:
    fields = {
        "executor": "ray", "worker": "actor#0", "host": "a", "device": "cuda:0", "model": "H200",
        "uuid": "GPU-1", "attempt": 1, "seconds": 10.0, "queued_s": 1.0, "submitted_at": 0.0,
        "received_at": 11.0, "build_s": 2.0,
    }  # fmt: skip
    return Placement(**{**fields, **changes})  # type: ignore[arg-type]


def usage(*placements: Placement, worked_s: float = 100.0) -> Usage:
    return Usage(tuple(placements), 0, 0, 0.0, worked_s)


def test_devices_are_told_apart_and_their_time_is_shared_out() -> None:
    other = placement(host="b", uuid="GPU-2", seconds=40.0, queued_s=5.0)
    view = utilisation_view([usage(placement(), placement(worker="actor#1"), other)])
    assert [(d.host, d.evaluations, d.busy_s, d.busy_share) for d in view.devices] == [
        ("b", 1, 40.0, 0.4), ("a", 2, 20.0, 0.2),
    ]  # fmt: skip
    assert view.devices[1].workers == ("actor#0", "actor#1")
    assert view.devices[0].label == "cuda:0 GPU-2", (
        "two GPUs of a machine have the same name inside"
    )
    assert view.busy_share == pytest.approx(0.3)
    assert view.queued_mean_s == pytest.approx(7 / 3)
    assert view.queued_max_s == 5.0
    assert view.build_s == 6.0
    assert view.models == ("H200",)


def test_a_campaign_counts_the_time_of_its_controller() -> None:
    runs = [usage(placement(), worked_s=20.0), usage(placement(), worked_s=30.0)]
    assert utilisation_view(runs).devices[0].busy_share == pytest.approx(20 / 30)
    assert utilisation_view(runs, worked=40.0).devices[0].busy_share == 0.5


def test_nothing_is_known_of_nothing() -> None:
    view = utilisation_view([])
    assert view.devices == ()
    assert (view.busy_share, view.queued_mean_s, view.model_mean_s) == (None, None, None)


def test_a_store_is_read_with_its_sittings_model_calls_and_gaps(tmp_path: Path) -> None:
    ran_on = {**placement()._asdict(), "attempt": 2}
    del ran_on["build_s"]

    def node(name: str, outcome: Outcome | None, **changes: object) -> NodeFinished:
        source = "class ModelNew: ..."
        candidate = Candidate(
            id=name, parent_id=None, source_hash=name,
            proposal=Proposal(source=source, mode="initial", title="x"),
        )  # fmt: skip
        tell = Tell(ask_id=1, node_id=name)
        return NodeFinished(tell=tell, candidate=candidate, outcome=outcome, **changes)  # type: ignore[arg-type]

    def failed(status: Status = Status.WRONG_RESULT, **environment: object) -> Outcome:
        return Outcome(
            status=status, stage=Stage.VERIFY, message="no", environment=environment,
            seconds={"start": 0.5, "load": 1.5, "load_import": 1.4, "verify": 3.0},
        )  # fmt: skip

    calls = (Calls(role="coder", model="m", requests=2, seconds=50.0),)
    with RunStore.create(tmp_path) as store:
        store.append(node("n1", failed(ran_on=ran_on), usage=calls), at="2026-01-01T00:00:00+00:00")
        store.append(node("n2", failed()), at="2026-01-01T00:01:00+00:00")
        store.append(node("n3", failed(Status.REJECTED)), at="2026-01-01T00:01:30+00:00")
        store.append(
            node("n4", failed(ran_on=ran_on), duplicate_of="n1"), at="2026-01-01T00:01:40+00:00"
        )
        found = usage_of(store)
    assert len(found.placements) == 1, "a repeat was not measured"
    assert found.unplaced == 1, "what was rejected never ran"
    assert found.placements[0].build_s == 2.0
    assert (found.model_calls, found.model_s) == (2, 50.0)
    assert found.worked_s == 100.0
    view = utilisation_view([found])
    assert view.repeated == 1
    assert view.model_mean_s == 25.0
    assert view.busy_share == pytest.approx(0.1)


def test_two_evaluations_that_agree_in_every_time_are_two_and_a_job_of_finalists_is_one(
    tmp_path: Path,
) -> None:
    """Quick jobs that arrive together have equal times at the precision of the record."""
    quick = placement(seconds=0.0, queued_s=0.0, received_at=0.0)._asdict()
    del quick["build_s"]

    def found(job: str) -> Outcome:
        where = {"ran_on": {**quick, "job": job}}
        return Outcome(
            status=Status.WRONG_RESULT, stage=Stage.VERIFY, message="no", environment=where
        )

    def node(name: str) -> NodeFinished:
        candidate = Candidate(
            id=name, parent_id=None, source_hash=name,
            proposal=Proposal(source=name, mode="initial", title="x"),
        )  # fmt: skip
        tell = Tell(ask_id=1, node_id=name)
        return NodeFinished(tell=tell, candidate=candidate, outcome=found(f"r-{name}"))

    with RunStore.create(tmp_path) as store:
        store.append(node("n1"))
        store.append(node("n2"))
        for job in ("r-remeasure-1", "r-remeasure-2"):
            for name in ("n1", "n2"):
                store.append(Remeasured(node_id=name, outcome=found(job)))
        placements = usage_of(store).placements
    assert len(placements) == 4
    assert [placed.job for placed in placements] == [
        "r-n1",
        "r-n2",
        "r-remeasure-1",
        "r-remeasure-2",
    ]
