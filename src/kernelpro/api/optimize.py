"""Optimise a problem: resolve the settings, run the loop, leave the drop-in file and the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpro import __version__, environ
from kernelpro.api.aim import resolve_aim
from kernelpro.api.executing import run_parts
from kernelpro.api.reporting import report
from kernelpro.api.runs import find_run, runs_folder, show_run
from kernelpro.errors import UserError
from kernelpro.executors.base import Executor
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig
from kernelpro.schema.event import Event
from kernelpro.schema.guidance import Arm
from kernelpro.schema.problem import Precision
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import Objective

Listener = Callable[[Event], None]
"""Receives every event right after it was recorded."""
DEFAULT_EVALUATIONS = 30
EXTERNAL = "external"
REPLAY = "replay"


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
    evaluations: int | None = None,
    minutes: float | None = None,
    target_speedup: float | None = None,
    cost_usd: float | None = None,
    tokens: int | None = None,
    stagnation: int | None = None,
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
) -> RunResult:
    """Search for a faster version of ``problem`` until the budget is used up.

    ``problem``: a KernelBench file, ``package.module:Class``, or a function or ``nn.Module`` with
    example ``inputs``. ``model``: ``playbook`` (no key needed), a chat model as
    ``provider:model``, ``replay:RUN``, or a plug-in's name; ``models`` chooses others by role
    and ``writer_options`` sets how they work (see ``proposers.llm.settings``). ``budget``
    overrides ``evaluations`` (30 if no limit is given), ``minutes``, ``target_speedup``,
    ``cost_usd``, ``tokens`` (these two are never exceeded) and ``stagnation``, the evaluations
    without a better candidate after which to stop.
    ``evaluation``: how the referee works; by default attempts get its fast checks, and the
    finalists, of which one becomes the winner, the full set. ``library``: a file of lessons
    across runs, read at the start and added to at the end. ``executor``: where candidates are
    built and timed, for example ``ray`` or ``spool:DIR``; None = here, on ``device``. The run
    folder holds every attempt, ``best.py`` (if something is faster than eager) and ``report.html``.

    Raises ``UserError`` (problem or settings), ``MachineError`` (no compiler ...),
    ``ProviderError`` (a model service). Ctrl-C ends the run cleanly: see ``stop_reason``.
    """
    from kernelpro.hardware import resolve_device
    from kernelpro.loop.run import start_run
    from kernelpro.problems.loader import load_problem

    if model == EXTERNAL:
        raise UserError("A run with your own candidates begins with: kernelpro start PROBLEM")
    loaded = load_problem(problem, inputs=inputs, precision=precision)
    aim = resolve_aim(
        objective, max_slowdown, evaluation or EvaluationConfig(checks="fast"),
        device if executor is None else None,
    )  # fmt: skip
    config = RunConfig(
        device=resolve_device(device) if executor is None else device,
        writer=_writer(model, runs_root),
        models=dict(models or {}),
        writer_options=_options(writer_options, models),
        search=search,
        search_options=search_options or {},
        objective=aim.objective,
        max_slowdown=max_slowdown,
        arm=arm,
        memory=memory,
        library=None if library is None else str(Path(library).expanduser().resolve()),
        seed=seed,
        parallel=parallel,
        budget=budget
        or budget_of(
            evaluations, minutes, target_speedup, cost_usd=cost_usd, tokens=tokens,
            stagnation=stagnation,
        ),
        evaluation=aim.evaluation,
    )
    with run_parts(executor) as parts:
        result = start_run(
            loaded, config, runs_root=runs_folder(runs_root), cache_root=environ.cache_root(),
            listeners=listeners, prepare=parts.prepare, assemble=parts.assemble,
        )  # fmt: skip
        parts.release(result)
    write_results(result)
    return result


def resume(
    run: Path | str,
    *,
    evaluations: int | None = None,
    minutes: float | None = None,
    target_speedup: float | None = None,
    cost_usd: float | None = None,
    tokens: int | None = None,
    executor: str | Executor | None = None,
    runs_root: Path | str | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Go on with a run that was stopped or killed.

    Limits given here replace those it has; they count from the run's beginning. A run that ended
    by itself and gets no new limit is left as it is.
    """
    from kernelpro.loop.run import resume_run

    folder = find_run(run, runs_root=runs_root)
    changed = None
    given = (evaluations, minutes, target_speedup, cost_usd, tokens)
    if any(limit is not None for limit in given):
        past = show_run(folder).budget
        changed = budget_of(
            evaluations, minutes, target_speedup, past, cost_usd=cost_usd, tokens=tokens
        )
    with run_parts(executor) as parts:
        result = resume_run(
            folder, budget=changed, cache_root=environ.cache_root(), listeners=listeners,
            assemble=parts.assemble, same_device=executor is None,
        )  # fmt: skip
        parts.release(result)
    write_results(result)
    return result


def _options(given: Mapping[str, Any] | None, models: Mapping[str, str] | None) -> dict[str, Any]:
    """``given``, with the tree that a librarian searches made a path."""
    from kernelpro.api.code import code_root

    options = dict(given or {})
    if models and "librarian" in models:
        options["code_root"] = str(code_root(options.get("code_root")))
    return options


def _writer(model: str, runs_root: Path | str | None) -> str:
    """``model``, with a replayed run's name made a path that later processes find too."""
    kind, _, recording = model.partition(":")
    if kind != REPLAY:
        return model
    if not recording:
        raise UserError("Say what to replay: replay:RUN, or replay:FILE of kernelpro runs export")
    path = Path(recording)
    found = path if path.is_file() else find_run(recording, runs_root=runs_root)
    return f"{REPLAY}:{found.resolve()}"


def budget_of(
    evaluations: int | None, minutes: float | None, target_speedup: float | None,
    base: Budget | None = None, *, cost_usd: float | None = None, tokens: int | None = None,
    stagnation: int | None = None,
) -> Budget:  # fmt: skip
    """The limits given, over those of ``base``; ``DEFAULT_EVALUATIONS`` if nothing else ends it."""
    if base is None:
        limits = (evaluations, minutes, cost_usd, tokens)
        limited = any(limit is not None for limit in limits)
        base = Budget(evaluations=None if limited else DEFAULT_EVALUATIONS)
    return dataclasses.replace(
        base,
        evaluations=base.evaluations if evaluations is None else evaluations,
        minutes=base.minutes if minutes is None else minutes,
        target_speedup=base.target_speedup if target_speedup is None else target_speedup,
        cost_usd=base.cost_usd if cost_usd is None else cost_usd,
        tokens=base.tokens if tokens is None else tokens,
        stagnation=base.stagnation if stagnation is None else stagnation,
    )


def write_results(result: RunResult) -> None:
    """Leave ``best.py`` and ``report.html`` in the run folder."""
    from kernelpro.build.export import export_candidate

    if result.best is not None:
        text = export_candidate(result.best.proposal.source, note=provenance(result))
        result.export_path.write_text(text, encoding="utf-8")
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
