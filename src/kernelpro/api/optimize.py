"""Optimise a problem: resolve the settings, run the loop, leave the drop-in file and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from kernelpro import __version__, environ
from kernelpro.api import writers
from kernelpro.api.aim import resolve_aim
from kernelpro.api.evaluation import load
from kernelpro.api.executing import run_parts
from kernelpro.api.limits import Limits, budget_of
from kernelpro.api.reporting import report
from kernelpro.api.runs import find_run, runs_folder, show_run
from kernelpro.errors import MachineError
from kernelpro.executors.base import Executor
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig
from kernelpro.schema.event import Event
from kernelpro.schema.guidance import Arm
from kernelpro.schema.problem import Precision, Problem
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import Objective

Listener = Callable[[Event], None]
"""Receives every event right after it was recorded."""


def optimize(
    problem: Any,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    model: str = "playbook",
    models: Mapping[str, str] | None = None,
    writer_options: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    search: str = "mcts",
    search_options: dict[str, Any] | None = None,
    objective: Objective = "latency",
    max_slowdown: float | None = None,
    arm: Arm = "full",
    memory: bool = True,
    library: Path | str | None = None,
    seed: int = 0,
    parallel: int = 1,
    executor: str | Executor | None = None,
    evaluation: EvaluationConfig | None = None,
    runs_root: Path | str | None = None,
    listeners: Sequence[Listener] = (),
    **limits: Unpack[Limits],
) -> RunResult:
    """Search for a faster version of ``problem`` until the budget is used up.

    ``problem``: a KernelBench file, ``package.module:Class``, or a function or ``nn.Module`` with
    example ``inputs``. ``model``: ``playbook`` (no key needed), a chat model as
    ``provider:model``, ``replay:RUN``, or a plug-in; ``models`` chooses others by role, with
    ``writer_options`` (``proposers.llm.settings``). ``limits`` are those of
    ``api.limits.Limits`` (30 evaluations if none is given); ``budget`` overrides them.
    ``evaluation``: by default attempts get the referee's fast checks, the finalists the full set.
    ``library``: a file of lessons across runs. ``executor``: where candidates are built and
    timed, for example ``ray`` or ``spool:DIR``; None = here, on ``device``. The run folder holds
    every attempt, ``best.py`` (if something is faster than eager) and ``report.html``.

    Raises ``UserError`` (problem or settings), ``MachineError`` (no compiler ...),
    ``ProviderError`` (a model service). Ctrl-C ends the run cleanly: see ``stop_reason``.
    """
    from kernelpro.hardware import resolve_device

    writer = writers.writer_name(model, runs_root)
    aim = resolve_aim(
        objective, max_slowdown, evaluation or EvaluationConfig(checks="fast"),
        device if executor is None else None,
    )  # fmt: skip
    config = RunConfig(
        device=resolve_device(device) if executor is None else device, writer=writer,
        models=dict(models or {}),
        writer_options=writers.writer_options(writer_options, models, writer),
        search=search, search_options=search_options or {}, objective=aim.objective,
        max_slowdown=max_slowdown, arm=arm, memory=memory, library=_absolute(library), seed=seed,
        parallel=parallel, budget=budget or budget_of(limits), evaluation=aim.evaluation,
    )  # fmt: skip
    return _started(load(problem, inputs, precision), config, executor, runs_root, listeners)


def resume(
    run: Path | str,
    *,
    executor: str | Executor | None = None,
    runs_root: Path | str | None = None,
    listeners: Sequence[Listener] = (),
    **limits: Unpack[Limits],
) -> RunResult:
    """Go on with a run that was stopped or killed.

    Limits given here replace those it has; they count from the run's beginning. A run that ended
    by itself and gets no new limit is left as it is.
    """
    from kernelpro.loop.run import resume_run

    folder = find_run(run, runs_root=runs_root)
    given = any(limit is not None for limit in limits.values())
    changed = budget_of(limits, show_run(folder).budget) if given else None
    with run_parts(executor) as parts:
        result = resume_run(
            folder, budget=changed, cache_root=environ.cache_root(), listeners=listeners,
            assemble=parts.assemble, same_device=executor is None,
        )  # fmt: skip
        parts.release(result)
    write_results(result)
    return result


def _started(
    problem: Problem, config: RunConfig, executor: str | Executor | None,
    runs_root: Path | str | None, listeners: Sequence[Listener],
) -> RunResult:  # fmt: skip
    from kernelpro.loop.run import start_run

    with run_parts(executor) as parts:
        result = start_run(
            problem, config, runs_root=runs_folder(runs_root), cache_root=environ.cache_root(),
            listeners=listeners, prepare=parts.prepare, assemble=parts.assemble,
        )  # fmt: skip
        parts.release(result)
    write_results(result)
    return result


def _absolute(path: Path | str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().resolve())


def write_results(result: RunResult) -> None:
    """Leave ``best.py`` and ``report.html`` in the run folder.

    A ``best.py`` of an earlier sitting goes where eager is to be kept after all. ``MachineError``
    if the folder cannot be written; the run itself is in the store by then.
    """
    from kernelpro.build.export import export_candidate

    path = result.export_path
    try:
        if result.best is None:
            path.unlink(missing_ok=True)
        else:
            text = export_candidate(result.best.proposal.source, note=provenance(result))
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineError(
            f"{path} cannot be written ({error.strerror}). Nothing is lost: the run is stored. "
            f"Once there is room, or permission: kernelpro optimize --resume {result.folder}"
        ) from error
    report(result.folder, "html")


def provenance(result: RunResult) -> str:
    """Where an exported file comes from, and what was measured of it."""
    assert result.best is not None
    speedup = f"{result.speedup:.2f}x the speed of eager PyTorch" if result.speedup else "not timed"
    return (
        f"Drop-in ModelNew for {result.problem}, written by kernelpro {__version__} "
        f"({result.best.proposal.writer}).\n"
        f"Run {result.run_id}, attempt {result.best.id}, on {result.device}: {speedup}.\n"
        f"Source {result.best.source_hash}"
    )
