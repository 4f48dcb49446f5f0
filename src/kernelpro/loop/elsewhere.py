"""A run whose builds and timings happen on an executor's workers, wherever those are.

Turns candidates into jobs and results into records that say where they come from. A run is tied to
the device model it was surveyed on: its jobs go to workers with that model only.
"""

from __future__ import annotations

import dataclasses
import secrets
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kernelpro.errors import MachineError
from kernelpro.executors.base import Executor, Job, Timed, device_model
from kernelpro.loop.assemble import Assemble, Prepare, check_config, strategy_of, writer_of
from kernelpro.loop.base import Collaborators, Examined
from kernelpro.loop.examining import placed
from kernelpro.schema.candidate import Candidate
from kernelpro.schema.codec import dumps, from_jsonable, to_jsonable
from kernelpro.schema.config import RunConfig
from kernelpro.schema.event import RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.profile import Profile
from kernelpro.text import short_hash

SURVEY_S = 1200.0
"""Beyond an evaluation's own limits: reference runs, calibration, a cold import of torch."""

Record = TypeVar("Record")


class JobKinds(NamedTuple):
    """Handlers that a run's jobs ask for; simulations name others."""

    prepare: str = "prepare"
    build: str = "build"
    evaluate: str = "evaluate"
    remeasure: str = "remeasure"


REAL = JobKinds()
SIMULATED = JobKinds(
    prepare="simulated_prepare", build="", evaluate="simulated_evaluate",
    remeasure="simulated_remeasure",
)  # fmt: skip
"""Outcomes invented from the source's hash: for tests and benchmarks of what carries jobs."""


def prepare_with(executor: Executor, kinds: JobKinds = REAL) -> Prepare:
    """Survey a problem on a worker; the first one that is free decides the run's device model."""

    def prepare(problem: Problem, config: RunConfig, run_id: str, cache_root: Path) -> RunStarted:
        check_config(config)
        job = Job(
            id=f"{run_id}-prepare", kind=kinds.prepare, share=run_id, timeout_s=SURVEY_S,
            payload={
                "problem": to_jsonable(problem), "config": to_jsonable(config), "run_id": run_id
            },
        )  # fmt: skip
        return _record(RunStarted, executor.submit(job).result())

    return prepare


def assemble_with(executor: Executor, kinds: JobKinds = REAL) -> Assemble:
    """Collaborators whose examiner is the executor's workers."""

    def assemble(started: RunStarted, cache_root: Path) -> Collaborators:
        return Collaborators(
            strategy=strategy_of(started.config),
            writer=writer_of(started.config),
            examiner=Elsewhere(executor, started, kinds),
        )

    return assemble


class Elsewhere:
    """Examines candidates on workers. Closing it leaves the executor to its owner."""

    def __init__(self, executor: Executor, started: RunStarted, kinds: JobKinds = REAL) -> None:
        self.overlaps = executor.overlaps
        self._executor = executor
        self._run_id = started.run_id
        self._model = device_model(started.device)
        self._started = dumps(started)
        self._kinds = kinds
        limits = started.config.evaluation
        self._timeout_s = (
            SURVEY_S + limits.build_timeout_s + 60 * limits.run_timeout_s + 10 * limits.max_time_s
        )

    def examine(self, candidate: Candidate) -> Future[Examined]:
        """See :class:`Examiner`. With builders, its build comes first, beside other timings."""
        answer: Future[Examined] = Future()
        if self._kinds.build and self._executor.builds != "none":
            build = self._executor.submit(self._build(candidate))
            build.add_done_callback(partial(self._built, candidate, answer))
        else:
            self._evaluate(candidate, answer, None)
        return answer

    def remeasure(self, sources: list[str]) -> list[Outcome]:
        """See :class:`Examiner`; all of them on one worker."""
        # A new name each time: this measurement must never be answered by an earlier one.
        job = self._job(f"remeasure-{secrets.token_hex(4)}", self._kinds.remeasure,
                        {"sources": sources}, count=len(sources))  # fmt: skip
        timed = self._executor.submit(job).result()
        if not isinstance(timed.result.value, list) or len(timed.result.value) != len(sources):
            raise MachineError(_unreadable(timed, f"no list of {len(sources)} outcomes"))
        return [
            placed(_record(Outcome, timed, value), timed.record()) for value in timed.result.value
        ]

    def close(self) -> None:
        """Nothing: the executor outlives the run."""

    def _built(self, candidate: Candidate, answer: Future[Examined], done: Future[Timed]) -> None:
        error = done.exception()
        if isinstance(error, KeyboardInterrupt):
            answer.set_exception(error)
            return
        # A build that could not be tried ahead is tried by the evaluation.
        value = done.result().result.value if error is None else None
        self._evaluate(candidate, answer, value.get("files") if isinstance(value, dict) else None)

    def _evaluate(self, candidate: Candidate, answer: Future[Examined], built: str | None) -> None:
        payload = {"source": candidate.proposal.source}
        if built:
            payload["built"] = built
        job = self._job(_name(candidate), self._kinds.evaluate, payload)
        self._executor.submit(job).add_done_callback(partial(_answer, answer))

    def _build(self, candidate: Candidate) -> Job:
        payload = {
            "source": candidate.proposal.source, "carry": self._executor.builds == "carried"
        }  # fmt: skip
        job = self._job(f"{_name(candidate)}-build", self._kinds.build, payload)
        return dataclasses.replace(job, pool="cpu", model=None)

    def _job(self, name: str, kind: str, payload: dict[str, Any], *, count: int = 1) -> Job:
        return Job(
            id=f"{self._run_id}-{name}", kind=kind,
            payload={"run_id": self._run_id, "started": self._started, **payload},
            share=self._run_id, model=self._model, timeout_s=self._timeout_s * count,
        )  # fmt: skip


def _name(candidate: Candidate) -> str:
    return f"{candidate.id}-{short_hash(candidate.source_hash, 8)}"


def _answer(answer: Future[Examined], done: Future[Timed]) -> None:
    """Hand a result on as records, or the reason why there is none."""
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
        return
    timed = done.result()
    value = timed.result.value
    try:
        if not isinstance(value, dict):
            raise MachineError(_unreadable(timed, "no outcome"))
        outcome = placed(_record(Outcome, timed, value.get("outcome")), timed.record())
        profile = value.get("profile")
        seen = None if profile is None else _record(Profile, timed, profile)
    except MachineError as fault:
        answer.set_exception(fault)
        return
    answer.set_result(Examined(outcome, seen))


def _record(cls: type[Record], timed: Timed, value: Any = None) -> Record:
    try:
        return from_jsonable(cls, timed.result.value if value is None else value)
    except ValueError as error:
        raise MachineError(_unreadable(timed, str(error))) from error


def _unreadable(timed: Timed, why: str) -> str:
    place = timed.result.place
    return (
        f"The result of {timed.result.job_id} from {place.worker} on {place.host} cannot be read "
        f"(is another version of kernelpro installed there?): {why}"
    )
