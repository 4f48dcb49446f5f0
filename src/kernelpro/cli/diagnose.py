"""``kernelpro diagnose | tools``: the expert's reading, and who does the reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kernelpro.cli import options
from kernelpro.cli.output import choice, problem_speaks_aside, say, say_json
from kernelpro.errors import UserError
from kernelpro.schema.guidance import Arm
from kernelpro.text import printable

COMMAND = "kernelpro.command"


class AfterDashes(TyperCommand):
    """A command whose words after ``--`` are a program of the user's, options and all."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the program off before the rest is read."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[COMMAND] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def diagnose(
    ctx: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="A saved report (ncu CSV or .ncu-rep, nsys SQLite, torch.profiler trace, 'profile "
            "--json'; .gz too), or a PROBLEM with a CANDIDATE. Or none, and '-- COMMAND ...' last.",
            show_default=False,
        ),
    ] = None,
    candidate: Annotated[
        Path | None, typer.Argument(metavar="CANDIDATE", help="Python file with class ModelNew.")
    ] = None,
    device: options.Device = "auto",
    sass: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Machine code of the report: cubin, program, listing."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="Of a report or COMMAND, only kernels with such a name."
        ),
    ] = None,
    tool: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Run only this tool; repeatable.")
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(metavar="none|raw|full", help="Print what a writer would be told instead."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page as one HTML file instead.")
    ] = None,
    json: options.Json = False,
) -> None:
    """What an expert would say: ranked findings with evidence, cause and what to do."""
    from kernelpro import api

    given = _given(source, ctx.meta.get(COMMAND))
    if arm is not None:
        if html is not None or tool:
            raise UserError("--arm prints what a writer would be told: no --html, no --tool")
        _say_arm(given, candidate, arm, json, device=device, sass=sass, kernel=kernel)
        return
    with problem_speaks_aside():
        found = api.diagnose(given, candidate, device=device, tools=tool, sass=sass, kernel=kernel)
    if html is not None:
        api.write_diagnosis(found, html, title=source or " ".join(given))
    if json:
        say_json(found.to_public())
    elif html is None:
        from kernelpro.dashboard.pages import diagnosis_page

        say(diagnosis_page(found))


def _say_arm(
    given: str | list[str], candidate: Path | None, arm: str, json: bool, **how: Any
) -> None:
    from kernelpro import api

    chosen = choice(arm, Arm, "--arm")
    with problem_speaks_aside():
        told = api.guidance(given, candidate, arm=chosen, **how)
    say_json(told) if json else typer.echo(printable(told.text))


def _given(source: str | None, command: list[str] | None) -> str | list[str]:
    """The report or problem, or the words of the command; exactly one must be there."""
    if source is not None and not command:
        return source
    if command and source is None:
        return command
    raise UserError(
        "Name one thing to diagnose: a report, a PROBLEM with its CANDIDATE, or a command after --"
    )


def tools(
    runs: options.Runs = None,
    json: options.Json = False,
) -> None:
    """The micro-profiling tools, and how well their predictions held in your runs."""
    from kernelpro import api

    rows = api.tools(runs_root=runs)
    if json:
        say_json({"tools": rows})
    else:
        from kernelpro.dashboard.pages import tools_page

        say(tools_page(rows))


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command(
        cls=AfterDashes,
        short_help="Say what an expert would say.",
        epilog="\b\nExamples:\n  kernelpro diagnose examples/rms_norm.py mine.py\n"
        "  kernelpro diagnose report.ncu-rep --sass kernels.cubin\n"
        "  kernelpro diagnose report.csv --json | jq '.kernels[0].findings[0]'\n"
        "  kernelpro diagnose --kernel softmax -- python train.py\n",
    )(diagnose)
    app.command(short_help="List the tools and their track record.")(tools)
