"""``kernelpro evaluate | profile | lint``: judge one candidate, or the problem itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice, problem_speaks_aside, say, say_json

NOT_ACCEPTED = 1


def evaluate(
    problem: options.Problem,
    candidate: options.Candidate,
    device: options.Device = "auto",
    checks: Annotated[
        str, typer.Option(metavar="fast|full", help="How many of the referee's checks to run.")
    ] = "full",
    verdict: Annotated[
        str,
        typer.Option(
            metavar="strict|official",
            help="Which verdict decides: ours, or the problem's own inputs and tolerance.",
        ),
    ] = "strict",
    seed: Annotated[
        int | None, typer.Option(help="Repeat the draws of an earlier evaluation.")
    ] = None,
    precision: options.Precision = None,
    sandbox: options.Sandbox = "best-effort",
    library_calls: options.LibraryCalls = True,
    energy: Annotated[
        bool, typer.Option("--energy", help="Also measure joules, where there is a counter.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Build, verify and time CANDIDATE against PROBLEM; exit code 1 if it is not accepted."""
    from kernelpro import api
    from kernelpro.schema.config import CheckLevel, EvaluationConfig, SandboxMode, Verdict

    config = EvaluationConfig(
        verdict=choice(verdict, Verdict, "--verdict"),
        sandbox=choice(sandbox, SandboxMode, "--sandbox"),
        allow_library_calls=library_calls,
        energy=energy,
    )
    level, allowed = choice(checks, CheckLevel, "--checks"), _precision(precision)
    with problem_speaks_aside():
        outcome = api.evaluate(
            problem, candidate, device=device, precision=allowed, seed=seed, checks=level,
            config=config,
        )  # fmt: skip
    if json:
        say_json(outcome)
    else:
        from kernelpro.dashboard.pages import outcome_page

        say(outcome_page(outcome))
    if not outcome.ok:
        raise typer.Exit(NOT_ACCEPTED)


def profile(
    problem: options.Problem,
    candidate: options.Candidate,
    device: options.Device = "auto",
    precision: options.Precision = None,
    json: options.Json = False,
) -> None:
    """How CANDIDATE runs: metrics by kernel, and what this machine cannot tell, with the reason."""
    from kernelpro import api

    with problem_speaks_aside():
        found = api.profile(problem, candidate, device=device, precision=_precision(precision))
    if json:
        say_json(found)
    else:
        from kernelpro.dashboard.pages import profile_page

        say(profile_page(found))


def lint(
    problem: options.Problem,
    device: options.Device = "auto",
    precision: options.Precision = None,
    json: options.Json = False,
) -> None:
    """Is PROBLEM worth optimising? Finds constant outputs, inputs that do not matter, tiny work."""
    from kernelpro import api

    with problem_speaks_aside():
        found = api.lint(problem, device=device, precision=_precision(precision))
    if json:
        say_json(found)
    else:
        from kernelpro.dashboard.pages import lint_page

        say(lint_page(found.labels))


def _precision(value: str | None) -> Any:
    from kernelpro.schema.problem import Precision

    return choice(value, Precision, "--precision")


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command(
        short_help="Build, verify and time one candidate.",
        epilog="\b\nExamples:\n  kernelpro evaluate examples/rms_norm.py mine.py\n"
        "  kernelpro evaluate my_op.py mine.py --checks fast --json | jq .speedup\n",
    )(evaluate)
    app.command(
        short_help="Show how a candidate runs.",
        epilog="\b\nExample:\n  kernelpro profile my_op.py mine.py --json > mine.json\n",
    )(profile)
    app.command(
        short_help="Check whether a problem is worth it.",
        epilog="\b\nExample:\n  kernelpro lint examples/rms_norm.py\n",
    )(lint)
