"""One task of a suite, start to result: by the loop, or by scoring imported generations.

A candidate's failure is part of a result. What the problem or the machine does wrong is recorded
as a ``failed`` task; anything else ends this process, and the suite records the crash.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpro.bench.kernelbench_record import Sample, SuiteConfig, TaskResult, Versus
from kernelpro.bench.kernelbench_suite import Suite
from kernelpro.bench.kernelbench_tasks import Task
from kernelpro.bench.kernelbench_versus import EAGER, versus
from kernelpro.errors import KernelproError, MachineError, StoreError, UserError
from kernelpro.hardware.base import peaks as peaks_of
from kernelpro.hardware.base import probe
from kernelpro.loop.run import resume_run, start_run, started_of
from kernelpro.schema.config import Budget, RunConfig
from kernelpro.schema.event import Event, NodeFinished, RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.problem import Problem
from kernelpro.schema.result import RunResult
from kernelpro.store.sqlite import RunStore
from kernelpro.views.run_summary import compile_over_eager, over_compile


class Performer:
    """Performs tasks of one suite in this process."""

    def __init__(self, suite: Suite, *, cache_root: Path) -> None:
        self._suite = suite
        self._config = suite.config
        self._cache_root = cache_root

    def perform(self, task: Task, samples: Mapping[int, str] | None = None) -> TaskResult:
        """Run the task (or score its ``samples``: number -> source), save and return the result."""
        started = time.monotonic()
        known = self._suite.result(task.key)
        base = _begun(task, known)
        self._suite.save(base)
        try:
            problem = task.load(self._config.precision)
            base = dataclasses.replace(base, problem_hash=problem.source_hash)
            if samples is None:
                result = self._optimise(base, problem)
            else:
                result = self._score(base, problem, samples)
        except KernelproError as error:
            machine = isinstance(error, MachineError)
            # The record may have been given the id of the run meanwhile.
            base = self._suite.result(task.key) or base
            result = dataclasses.replace(
                base, state="failed", fault="machine" if machine else "problem", detail=str(error)
            )
        spent = base.seconds + time.monotonic() - started
        result = dataclasses.replace(
            result, seconds=round(spent, 3), finished_at=_now() if result.state != "started" else ""
        )
        self._suite.save(result)
        return result

    # ---- the loop -----------------------------------------------------------------------------

    def _optimise(self, base: TaskResult, problem: Problem) -> TaskResult:
        run = self._resume(base) or self._start(base, problem)
        started = started_of(run.folder)
        begun = dataclasses.replace(base, **_facts(run, started))
        if run.stop_reason == "interrupted":
            return dataclasses.replace(begun, state="started", detail="interrupted")
        outcome = run.outcome
        source = run.best.proposal.source if run.best is not None else None
        versus = self._versus(problem, source, outcome, started)
        if versus is not None and EAGER not in versus.latencies:
            return dataclasses.replace(
                begun, state="failed", fault="machine", versus=versus,
                detail=f"the reference could not be timed: {versus.missing}",
            )  # fmt: skip
        if run.best is None or outcome is None:
            return _eager_kept(begun, started, versus)
        return dataclasses.replace(
            begun, state="improved", speedup=outcome.speedup, outcome=outcome, versus=versus,
            over_compile=over_compile(outcome), title=run.best.proposal.title,
            left_to_torch=_left(run.best.proposal.rationale),
            source=self._suite.save_source(base.key, run.best.proposal.source),
        )  # fmt: skip

    def _start(self, base: TaskResult, problem: Problem) -> RunResult:
        def note(event: Event) -> None:
            if isinstance(event, RunStarted):
                self._suite.save(dataclasses.replace(base, state="started", run=event.run_id))

        return start_run(
            problem, run_config(self._config), runs_root=self._suite.runs,
            cache_root=self._cache_root, listeners=[note],
        )  # fmt: skip

    def _resume(self, base: TaskResult) -> RunResult | None:
        """The run that was cut off, gone on with; None if there is none, or it cannot go on.

        A run that was measured on another device, or was killed while it was created, is left
        where it is, and the task begins again.
        """
        if base.state != "started" or not base.run:
            return None
        try:
            return resume_run(self._suite.runs / base.run, cache_root=self._cache_root)
        except (StoreError, UserError):
            return None

    def _versus(
        self, problem: Problem, source: str | None, outcome: Outcome | None, started: RunStarted
    ) -> Versus | None:
        """The further match, if this suite has a question that the run did not answer."""
        config = self._config.evaluation
        compiled = config.compile_baseline and compile_over_eager(outcome) is None
        if problem.precision == "strict" and not compiled:
            return None
        return versus(
            problem, source, started.device, config, peaks=started.peaks,
            cache_root=self._cache_root, with_compiled=compiled,
        )  # fmt: skip

    # ---- imported generations -----------------------------------------------------------------

    def _score(self, base: TaskResult, problem: Problem, samples: Mapping[int, str]) -> TaskResult:
        from kernelpro.evaluation.lint import lint_problem
        from kernelpro.evaluation.referee import Referee

        device = probe(self._config.device)
        labels = lint_problem(problem, device).labels
        with Referee(
            problem, device, self._config.evaluation, cache_root=self._cache_root,
            peaks=peaks_of(device, cache_root=self._cache_root),
        ) as referee:  # fmt: skip
            judged = tuple(
                Sample(number=number, outcome=referee.evaluate(source, checks="full"))
                for number, source in sorted(samples.items())
            )
        scored = dataclasses.replace(
            base, samples=judged, labels=labels, device=device.name, written=len(judged),
            statuses=_count(judged),
        )  # fmt: skip
        best = max(
            (s for s in judged if s.outcome.ok), key=lambda s: s.outcome.speedup or 0, default=None
        )
        if best is None:
            return dataclasses.replace(
                scored, state="unsolved", detail=f"none of {len(judged)} generations was accepted"
            )
        outcome = best.outcome
        faster = (outcome.speedup or 0) > 1.0
        return dataclasses.replace(
            scored, state="improved", outcome=outcome, speedup=outcome.speedup,
            over_compile=over_compile(outcome), title=f"sample {best.number}",
            detail="" if faster else "correct, and slower than eager",
            source=self._suite.save_source(base.key, samples[best.number]),
        )  # fmt: skip


def run_config(config: SuiteConfig) -> RunConfig:
    """How the loop runs one task of the suite."""
    return RunConfig(
        device=config.device, writer=config.model, search=config.search, seed=config.seed,
        budget=Budget(evaluations=config.evaluations, minutes=config.task_minutes),
        evaluation=dataclasses.replace(config.evaluation, checks="fast"),
    )  # fmt: skip


def _begun(task: Task, known: TaskResult | None) -> TaskResult:
    """Where the task stands: a run that was cut off, or nothing."""
    if known is not None and known.state == "started":
        return known
    return TaskResult(key=task.key, name=task.name, problem_hash="", state="started")


def _facts(run: RunResult, started: RunStarted) -> dict[str, Any]:
    """What every result of a run holds."""
    controls: dict[str, list[str]] = {}
    with RunStore.open(run.folder) as store:
        for recorded in store.recorded(profiles=False):
            event = recorded.event
            if isinstance(event, NodeFinished) and event.outcome is not None:
                controls = controls or event.outcome.evidence.get("controls_passing", {})
    return {
        "run": run.run_id, "labels": run.labels, "written": run.evaluations,
        "statuses": run.statuses, "device": started.device.name,
        "versions": started.versions, "controls_passing": controls,
    }  # fmt: skip


def _eager_kept(base: TaskResult, started: RunStarted, versus: Versus | None) -> TaskResult:
    """The reference is handed back: exactly 1.0, and why."""
    compiled = None if versus is None else versus.compiled
    if not base.written:
        reason = "the writer had nothing to propose for this problem"
        if not started.graphs:
            reason += " (it cannot be exported)"
    elif not base.statuses.get("ok"):
        reason = "no candidate was accepted"
    else:
        reason = "no candidate beat eager beyond the measured noise"
    return dataclasses.replace(
        base, state="eager_kept", speedup=1.0, detail=reason, versus=versus,
        over_compile=1.0 / compiled if compiled else None,
    )  # fmt: skip


def _left(rationale: str) -> str:
    """The playbook's account of what stays with the library."""
    _, found, rest = rationale.partition("Left to torch: ")
    return rest.rstrip(".") if found else ""


def _count(samples: Sequence[Sample]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for sample in samples:
        status = sample.outcome.status.value
        counts[status] = counts.get(status, 0) + 1
    return counts


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
