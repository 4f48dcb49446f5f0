"""The task lint over a KernelBench checkout, as a list by level and number that can be committed.

One entry a task: labels, the numbers behind them, and which wrong answers would pass under the
problem's own inputs and under the offset family. Nothing is decided here that
``evaluation.lint`` does not decide.
"""

from __future__ import annotations

import datetime
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelpro.bench.kernelbench_aggregate import NOT_A_FAULT, TaskVerdict
from kernelpro.bench.kernelbench_suite import write_whole
from kernelpro.bench.kernelbench_tasks import Task, TaskKey
from kernelpro.errors import KernelproError, UserError
from kernelpro.schema.codec import CONFIG, dumps, loads
from kernelpro.schema.hardware import Device
from kernelpro.schema.problem import Precision, Problem

SEEDS = (1, 2)
"""Of draws and weights: the same list on every run of the same machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintEntry:
    """What lint found on one task."""

    name: str
    problem_hash: str
    labels: tuple[str, ...] = ()
    controls_passing: dict[str, list[str]] = field(default_factory=dict)
    """Input family -> wrong answers that pass the strict bound."""
    families_skipped: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""
    """Why there is no verdict, if there is none."""

    __pydantic_config__ = CONFIG

    @property
    def verdict(self) -> TaskVerdict:
        """As the aggregates take it."""
        return TaskVerdict(labels=self.labels, controls_passing=self.controls_passing)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintList:
    """The whole list, and where it was made."""

    checkout: str
    device: str
    torch: str
    made_at: str
    precision: Precision = "strict"
    tasks: dict[str, LintEntry] = field(default_factory=dict)
    """``L1/19`` -> entry."""

    __pydantic_config__ = CONFIG

    def verdicts(self) -> dict[TaskKey, TaskVerdict]:
        """Of every task that has one."""
        return {_key(name): entry.verdict for name, entry in self.tasks.items() if not entry.error}

    def counts(self) -> dict[str, int]:
        """Label -> how many tasks carry it."""
        return dict(Counter(label for e in self.tasks.values() for label in e.labels))

    def clean(self) -> list[TaskKey]:
        """Tasks with a verdict and no label, in order."""
        keys = [k for k, v in self.verdicts().items() if not set(v.labels) - NOT_A_FAULT]
        return sorted(keys)


def lint_tasks(
    tasks: Sequence[Task], device: Device, precision: Precision = "strict",
    known: Mapping[str, LintEntry] | None = None, *, limit_minutes: float | None = None,
) -> Iterator[tuple[Task, LintEntry]]:  # fmt: skip
    """Lint task by task; those in ``known`` with the same source are not looked at again.

    No task is begun after ``limit_minutes``.
    """
    started = time.monotonic()
    for task in tasks:
        if limit_minutes is not None and time.monotonic() - started > 60 * limit_minutes:
            return
        earlier = (known or {}).get(str(task.key))
        problem = task.load(precision)
        if earlier and earlier.problem_hash == problem.source_hash and not earlier.error:
            continue
        try:
            yield task, lint_entry(problem, task.name, device)
        except KernelproError as error:
            yield (
                task,
                LintEntry(name=task.name, problem_hash=problem.source_hash, error=str(error)),
            )


def lint_entry(problem: Problem, name: str, device: Device) -> LintEntry:
    """Labels, and the wrong answers that pass by family. ``UserError`` if it does not run."""
    from kernelpro.evaluation.lint import lint_problem

    started = time.perf_counter()
    report = lint_problem(problem, device)
    passing, skipped = _controls(problem, device)
    return LintEntry(
        name=name, problem_hash=problem.source_hash, labels=report.labels,
        controls_passing=passing, families_skipped=skipped, evidence=report.evidence,
        seconds=round(time.perf_counter() - started, 3),
    )  # fmt: skip


def _controls(problem: Problem, device: Device) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The referee's negative controls, under two sets of jittered weights."""
    from kernelpro.evaluation.controls import insensitive
    from kernelpro.evaluation.expectation import Drawer
    from kernelpro.evaluation.parameters import jittered
    from kernelpro.evaluation.prepare import prepare
    from kernelpro.evaluation.reference import seeded

    reference, traits, _ = prepare(
        problem, device.id, construction_seed=SEEDS[0], draw_on=device.id
    )
    drawer = Drawer(reference, traits)
    states = [reference.initial_state]
    if reference.initial_state:
        buffers = frozenset(name for name, _ in reference.model.named_buffers())
        states = []
        for seed in SEEDS:
            with seeded(seed, device.id):
                states.append(jittered(reference.initial_state, buffers))
    rng = random.Random(SEEDS[0])
    draws = [rng.getrandbits(62), rng.getrandbits(62)]
    return insensitive(drawer, states, problem.precision, draws), dict(drawer.skipped)


def read_lint(path: Path) -> LintList:
    """A committed list; ``UserError`` if it is none."""
    try:
        return loads(LintList, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"The lint list {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not a lint list: {error}") from error


def write_lint(path: Path, found: LintList) -> None:
    """Replace the list, tasks in order."""
    ordered = {name: found.tasks[name] for name in sorted(found.tasks, key=_key)}
    text = dumps(LintList(
        checkout=found.checkout, device=found.device, torch=found.torch, made_at=found.made_at,
        precision=found.precision, tasks=ordered,
    ), indent=1)  # fmt: skip
    write_whole(path, text + "\n")


def new_list(checkout: str, device: Device, precision: Precision) -> LintList:
    """An empty list for this machine."""
    import torch

    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return LintList(
        checkout=checkout, device=device.name, torch=torch.__version__, made_at=now,
        precision=precision,
    )  # fmt: skip


def _key(name: str) -> TaskKey:
    level, number = name.removeprefix("L").split("/")
    return TaskKey(int(level), int(number))
