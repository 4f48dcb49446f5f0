"""``kernelpro optimize``: the whole loop."""

from __future__ import annotations

from typing import Any

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice, problem_speaks_aside, say, say_json, share, stderr_console
from kernelpro.errors import UserError

INTERRUPTED = 130
EXAMPLES = """\
\b
Examples:
  kernelpro optimize examples/rms_norm.py
  kernelpro optimize my_op.py --evaluations 60 --target-speedup 3
  kernelpro optimize my_pkg.layers:Fused --device cuda:1 --minutes 20
  kernelpro optimize --resume latest --evaluations 100
  kernelpro optimize my_op.py --model anthropic:claude-sonnet-4-6 --cost-usd 5
"""


OF_A_SITTING = frozenset({
    "resume", "problem", "evaluations", "minutes", "target_speedup", "cost_usd", "tokens",
    "stagnation", "executor", "runs", "json", "quiet", "plain",
})  # fmt: skip
"""What may be said again with ``--resume``; all else was settled when the run began."""


def optimize(
    context: typer.Context,
    problem: options.OptionalProblem = None,
    resume: options.Resume = None,
    device: options.Device = "auto",
    model: options.Model = "playbook",
    evaluations: options.Evaluations = None,
    minutes: options.Minutes = None,
    target_speedup: options.TargetSpeedup = None,
    cost_usd: options.CostUsd = None,
    tokens: options.Tokens = None,
    model_initial: options.ModelInitial = None,
    model_repair: options.ModelRepair = None,
    model_optimize: options.ModelOptimize = None,
    model_analyst: options.ModelAnalyst = None,
    model_profile: options.ModelProfile = None,
    model_memory: options.ModelMemory = None,
    model_librarian: options.ModelLibrarian = None,
    code_root: options.CodeRoot = None,
    prompt_tokens: options.PromptTokens = None,
    reply_tokens: options.ReplyTokens = None,
    price: options.Price = None,
    parallel: options.Parallel = 1,
    executor: options.OptionalExecutor = None,
    search: options.Search = "mcts",
    objective: options.Objective = "latency",
    max_slowdown: options.MaxSlowdown = None,
    stagnation: options.Stagnation = None,
    library: options.Library = None,
    precision: options.Precision = None,
    seed: options.Seed = 0,
    sandbox: options.Sandbox = "best-effort",
    library_calls: options.LibraryCalls = True,
    runs: options.Runs = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    plain: options.Plain = False,
) -> None:
    """Search for a faster version of PROBLEM and leave a drop-in file and a report.

    Every attempt is built, verified against the reference, timed beside it, profiled and
    diagnosed; the advice goes into the next attempt. Ctrl-C ends cleanly and can be resumed.
    """
    given = {
        "device": device, "model": model, "search": search, "seed": seed, "library": library,
        "objective": _objective(objective), "precision": _precision(precision),
        "max_slowdown": share(max_slowdown, "--max-slowdown"), "parallel": parallel,
        "evaluation": options.attempts(sandbox, library_calls=library_calls),
        "models": _given(
            initial=model_initial, repair=model_repair, optimize=model_optimize,
            analyst=model_analyst, profile_analyst=model_profile, memory=model_memory,
            librarian=model_librarian),
        "writer_options": _given(prompt_tokens=prompt_tokens, reply_tokens=reply_tokens,
                                 price=price, code_root=code_root),
    }  # fmt: skip
    limits = {"evaluations": evaluations, "minutes": minutes, "target_speedup": target_speedup,
              "cost_usd": cost_usd, "tokens": tokens, "stagnation": stagnation,
              "executor": executor}  # fmt: skip
    result, view = _run(context, problem, resume, given, limits, runs, quiet=quiet, plain=plain)
    _say(result, view, json=json)


def _only_limits(context: typer.Context, resume: str | None) -> None:
    """``UserError`` for an option that a run which goes on would ignore."""
    if resume is None:
        return
    said = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in OF_A_SITTING and _was_said(context, str(parameter.name))
    ]
    if said:
        raise UserError(
            f"With --resume, {', '.join(said)} cannot be changed: it was settled when the run "
            "began. Start a new run for it; limits (--evaluations, --minutes ...) can be raised"
        )


def _was_said(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _say(result: Any, view: Any, *, json: bool) -> None:
    if json:
        say_json(result)
    else:
        from pathlib import Path

        from kernelpro.dashboard.drawing import closing

        say(closing(view.run, Path(result.folder)))
    if result.stop_reason == "interrupted":
        raise typer.Exit(INTERRUPTED)


def _run(
    context: typer.Context, problem: str | None, resume: str | None, given: dict[str, Any],
    limits: dict[str, Any], runs: Any, *, quiet: bool, plain: bool,
) -> tuple[Any, Any]:  # fmt: skip
    from kernelpro import api, environ
    from kernelpro.dashboard.terminal import terminal_view

    if (problem is None) == (resume is None):
        raise UserError("Name a PROBLEM, or a run to go on with: --resume RUN (one, not both)")
    _only_limits(context, resume)
    plain = plain or environ.plain_output()
    shown = terminal_view(stderr_console(), plain=plain, quiet=quiet)
    with problem_speaks_aside(), shown as view:
        if resume is not None:
            view.run = api.show_run(resume, runs_root=runs)
            result = api.resume(resume, runs_root=runs, listeners=[view], **limits)
        else:
            result = api.optimize(problem, runs_root=runs, listeners=[view], **given, **limits)
    view.run = api.show_run(result.folder)
    return result, view


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _objective(value: str) -> Any:
    from kernelpro.schema.search import Objective

    return choice(value, Objective, "--objective")


def _precision(value: str | None) -> Any:
    from kernelpro.schema.problem import Precision

    return choice(value, Precision, "--precision")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(epilog=EXAMPLES, short_help="Search for a faster version of a problem.")(optimize)
