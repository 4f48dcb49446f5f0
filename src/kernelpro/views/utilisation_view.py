"""How well the machines of one or more runs were used: devices, queues, builds, model calls.

Read from the placement that every outcome carries (``environment["ran_on"]``), straight out of
SQLite, so that a front end can afford it for campaigns of thousands of attempts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kernelpro.schema.outcome import Status
from kernelpro.store.sittings import elapsed_s
from kernelpro.store.sqlite import RunStore
from kernelpro.views.run import Run

BUILD_STAGES = ("start", "load")
"""Stages of an evaluation that are spent before its device has anything to do."""

_PLACEMENTS = """
SELECT json_extract(payload, '$.outcome.environment.ran_on'),
       json_extract(payload, '$.outcome.seconds'), json_extract(payload, '$.usage'), status, kind,
       json_extract(payload, '$.duplicate_of')
FROM event WHERE kind IN ('node_finished', 'remeasured') ORDER BY seq
"""


class Placement(NamedTuple):
    """One evaluation: where it ran and how long that took."""

    executor: str
    worker: str
    host: str
    device: str
    model: str
    uuid: str
    attempt: int
    seconds: float
    """A worker and its device were kept for this long."""
    queued_s: float
    submitted_at: float
    received_at: float
    """Both by the controller's clock, in seconds since the epoch."""
    build_s: float
    """Of ``seconds``: starting, building and loading."""
    job: str = ""
    """Id of its job; "" where there was none, or in records from before jobs were named."""


class Usage(NamedTuple):
    """What a run's store says about how its machines were used."""

    placements: tuple[Placement, ...]
    unplaced: int
    """Evaluations whose record does not say where they ran."""
    model_calls: int
    model_s: float
    """Waiting for language models, summed over calls that may have overlapped."""
    worked_s: float
    """From the start of each sitting to its last event."""


class DeviceUse(NamedTuple):
    """One device."""

    device: str
    """As its worker names it: ``cpu`` or ``cuda:N``."""
    host: str
    model: str
    uuid: str
    workers: tuple[str, ...]
    evaluations: int
    busy_s: float
    busy_share: float | None
    """Of the time worked on the runs, 0..1; None if that is not known."""

    @property
    def label(self) -> str:
        """Its name; of a GPU with its UUID's beginning, since each worker calls its own cuda:0."""
        return f"{self.device} {self.uuid[:12]}" if self.device.startswith("cuda") else self.device


class UtilisationView(NamedTuple):
    """The whole."""

    devices: tuple[DeviceUse, ...]
    """Busiest first."""
    busy_share: float | None
    """Mean of the devices."""
    models: tuple[str, ...]
    """Device models that timed something; more than one in one run means that its figures do not
    compare."""
    evaluations: int
    repeated: int
    """Evaluations that an earlier worker was lost with."""
    queued_mean_s: float | None
    queued_max_s: float | None
    build_s: float
    """Spent building on workers that hold a device, in all: what builders ahead would save."""
    model_calls: int
    model_mean_s: float | None
    """One call of a language model."""
    worked_s: float
    unplaced: int


def usage_of(store: RunStore) -> Usage:
    """What the run in ``store`` says so far."""
    results: list[_Result] = []
    calls, model_s = 0, 0.0
    for ran_on, seconds, usage, status, kind, duplicate_of in store.query(_PLACEMENTS):
        for call in _parsed(usage) or ():
            calls += int(call.get("requests") or 0)
            model_s += float(call.get("seconds") or 0.0)
        if duplicate_of is None:  # else written, but not measured again
            placed = _placement(_parsed(ran_on), _parsed(seconds))
            # A rejected one never ran, and one without a status was never asked for.
            ran = status not in (None, Status.REJECTED.value)
            results.append(_Result(placed, ran=ran, final=kind == "remeasured"))
    placements, unplaced = _evaluations(results)
    times = store.query("SELECT at, kind FROM event ORDER BY seq")
    worked = elapsed_s((str(at), str(kind)) for at, kind in times)
    return Usage(placements, unplaced, calls, model_s, worked)


def usage_of_run(run: Run) -> Usage:
    """As :func:`usage_of`, of a run whose whole records are in memory: for the report."""
    measured = [n.outcome for n in run.nodes.values() if n.outcome and n.duplicate_of is None]
    outcomes = [(o, False) for o in measured] + [(o, True) for o in run.remeasured.values()]
    placements, unplaced = _evaluations(
        _Result(_placement(outcome.environment.get("ran_on"), outcome.seconds),
                ran=outcome.status is not Status.REJECTED, final=final)
        for outcome, final in outcomes
    )  # fmt: skip
    calls = [call for facts in run.facts.values() for call in facts.usage]
    worked = run.stopped.elapsed_s if run.stopped else 0.0
    return Usage(placements, unplaced, sum(call.requests for call in calls),
                 sum(call.seconds for call in calls), worked)  # fmt: skip


def utilisation_view(usages: Sequence[Usage], *, worked: float | None = None) -> UtilisationView:
    """The devices of all ``usages`` together. ``worked``: seconds that somebody worked on them;
    None = the longest of them, as for a single run."""
    placements = [placed for usage in usages for placed in usage.placements]
    if worked is None:
        worked = max((usage.worked_s for usage in usages), default=0.0)
    by_device: dict[tuple[str, str, str], list[Placement]] = defaultdict(list)
    for placed in placements:
        by_device[placed.host, placed.device, placed.uuid].append(placed)
    devices = sorted(
        (_device(found, worked) for found in by_device.values()), key=lambda d: -d.busy_s
    )
    shares = [device.busy_share for device in devices if device.busy_share is not None]
    queued = [placed.queued_s for placed in placements]
    calls = sum(usage.model_calls for usage in usages)
    return UtilisationView(
        devices=tuple(devices),
        busy_share=sum(shares) / len(shares) if shares else None,
        models=tuple(sorted({placed.model for placed in placements})),
        evaluations=len(placements),
        repeated=sum(placed.attempt > 1 for placed in placements),
        queued_mean_s=sum(queued) / len(queued) if queued else None,
        queued_max_s=max(queued, default=None),
        build_s=sum(placed.build_s for placed in placements),
        model_calls=calls,
        model_mean_s=sum(usage.model_s for usage in usages) / calls if calls else None,
        worked_s=worked,
        unplaced=sum(usage.unplaced for usage in usages),
    )


class _Result(NamedTuple):
    """One outcome on record."""

    placed: Placement | None
    ran: bool
    final: bool
    """A second measurement, made together with others."""


def _evaluations(results: Iterable[_Result]) -> tuple[tuple[Placement, ...], int]:
    """Where each evaluation ran, and of how many that is not on record."""
    placements: list[Placement] = []
    finals: set[tuple[Any, ...]] = set()
    unplaced = 0
    for result in results:
        if result.placed is None:
            # How many jobs second measurements were cannot be told without their places.
            unplaced += result.ran and not result.final
        elif not result.final:
            # Each by itself: two quick ones may agree in every time and place on record.
            placements.append(result.placed)
        elif (together := _job_of(result.placed)) not in finals:
            # Finalists are measured together: one job, as many outcomes.
            finals.add(together)
            placements.append(result.placed)
    return tuple(placements), unplaced


def _job_of(placed: Placement) -> tuple[Any, ...]:
    """What outcomes of one job have in common and those of two jobs have not."""
    return (placed.job,) if placed.job else (placed.worker, placed.submitted_at, placed.received_at)


def _parsed(text: object) -> Any:
    return json.loads(str(text)) if text else None


def _placement(found: Any, stages: Any) -> Placement | None:
    if not found:
        return None
    return Placement(
        executor=found["executor"], worker=found["worker"], host=found["host"],
        device=found["device"], model=found["model"], uuid=found["uuid"],
        attempt=found["attempt"], seconds=found["seconds"], queued_s=found["queued_s"],
        submitted_at=found["submitted_at"], received_at=found["received_at"],
        build_s=sum(float((stages or {}).get(stage) or 0.0) for stage in BUILD_STAGES),
        job=found.get("job", ""),
    )  # fmt: skip


def _device(placements: list[Placement], worked: float) -> DeviceUse:
    first = placements[0]
    busy_s = sum(placed.seconds for placed in placements)
    return DeviceUse(
        device=first.device, host=first.host, model=first.model, uuid=first.uuid,
        workers=tuple(sorted({placed.worker for placed in placements})),
        evaluations=len(placements), busy_s=busy_s,
        busy_share=min(1.0, busy_s / worked) if worked > 0 else None,
    )  # fmt: skip
