"""Optimise a problem: resolve the settings, run the loop, leave the drop-in file and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelpro import environ
from kernelpro.api.reporting import report
from kernelpro.api.runs import find_run
from kernelpro.errors import UserError
from kernelpro.schema.config import Budget, EvaluationConfig, RunConfig
from kernelpro.schema.guidance import Arm
from kernelpro.schema.problem import Precision
from kernelpro.schema.result import RunResult
from kernelpro.schema.search import Objective

Listener = Callable[[Any], None]
"""Receives every event and stage notification of ``loop.listeners``."""


def optimize(
    problem: Any,
    *,
    inputs: Any = None,
    precision: Precision | None = None,
    device: str = "auto",
    model: str = "playbook",
    budget: Budget | None = None,
    evaluations: int | None = 30,
    minutes: float | None = None,
    target_speedup: float | None = None,
    search: str = "mcts",
    search_options: dict[str, Any] | None = None,
    objective: Objective = "latency",
    arm: Arm = "full",
    seed: int = 0,
    parallel: int = 1,
    evaluation: EvaluationConfig | None = None,
    runs_root: Path | str | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Search for a faster version of ``problem`` until the budget is used up.

    ``problem``: a KernelBench file, ``package.module:Class``, or a function or ``nn.Module`` with
    example ``inputs``. ``model``: ``playbook`` (no key needed) or ``provider:name``. ``budget``
    overrides ``evaluations``, ``minutes`` and ``target_speedup``. The run folder holds every
    attempt, ``best.py`` (if something is faster than eager) and ``report.html``.

    Raises ``UserError`` (problem or settings), ``MachineError`` (no compiler ...),
    ``ProviderError`` (a model service). Ctrl-C ends the run cleanly: see ``stop_reason``.
    """
    from kernelpro.hardware import resolve_device
    from kernelpro.loop.run import start_run
    from kernelpro.problems.loader import load_problem

    loaded = load_problem(problem, inputs=inputs, precision=precision)
    limits = budget or checked_budget(evaluations, minutes, target_speedup)
    config = RunConfig(
        device=resolve_device(device),
        writer=model,
        search=checked_search(search),
        search_options=search_options or {},
        objective=objective,
        arm=arm,
        seed=seed,
        parallel=parallel,
        budget=limits,
        evaluation=evaluation or EvaluationConfig(),
    )
    result = start_run(
        loaded,
        config,
        runs_root=Path(runs_root) if runs_root is not None else environ.runs_root(),
        cache_root=environ.cache_root(),
        listeners=listeners,
    )
    write_results(result)
    return result


def resume(
    run: Path | str,
    *,
    budget: Budget | None = None,
    runs_root: Path | str | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Go on with a run that was stopped or killed; ``budget`` replaces the one it started with."""
    from kernelpro.loop.run import resume_run

    folder = find_run(run, runs_root=runs_root)
    result = resume_run(folder, budget=budget, cache_root=environ.cache_root(), listeners=listeners)
    write_results(result)
    return result


def checked_budget(
    evaluations: int | None, minutes: float | None, target_speedup: float | None
) -> Budget:
    """A budget that ends; ``UserError`` for one that never does or never begins."""
    named = {"evaluations": evaluations, "minutes": minutes, "target-speedup": target_speedup}
    for name, value in named.items():
        if value is not None and value <= 0:
            raise UserError(f"--{name} must be positive, got {value:g}")
    if evaluations is None and minutes is None:
        raise UserError("Without a limit the run would never end: set --evaluations or --minutes")
    return Budget(evaluations=evaluations, minutes=minutes, target_speedup=target_speedup)


def checked_search(name: str) -> str:
    """``name`` if such a strategy exists; ``UserError`` with a suggestion otherwise."""
    from kernelpro.search.base import STRATEGIES

    STRATEGIES.load(name)
    return name


def write_results(result: RunResult) -> None:
    """Leave ``best.py`` and ``report.html`` in the run folder."""
    from kernelpro.build.export import export_module

    if result.best is not None:
        text = export_module(result.best.proposal.source)
        result.export_path.write_text(text, encoding="utf-8")
    report(result.folder, "html")
