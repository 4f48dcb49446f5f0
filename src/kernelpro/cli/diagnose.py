"""``kernelpro diagnose | tools``: the expert's reading, and who does the reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice, say, say_json
from kernelpro.schema.guidance import Arm
from kernelpro.text import printable


def diagnose(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A saved report (ncu CSV or .ncu-rep, nsys SQLite, torch.profiler trace, 'profile "
            "--json'), or a PROBLEM with a CANDIDATE.",
            show_default=False,
        ),
    ],
    candidate: Annotated[
        Path | None, typer.Argument(metavar="CANDIDATE", help="Python file with class ModelNew.")
    ] = None,
    device: options.Device = "auto",
    sass: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Machine code of the report: cubin, program, listing."),
    ] = None,
    tool: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Run only this tool; repeatable.")
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(metavar="none|raw|full", help="Print what a writer would be told instead."),
    ] = None,
    json: options.Json = False,
) -> None:
    """What an expert would say: ranked findings with evidence, cause and what to do."""
    from kernelpro import api

    if arm is not None:
        chosen = choice(arm, Arm, "--arm")
        told = api.guidance(source, candidate, device=device, sass=sass, arm=chosen)
        say_json(told) if json else typer.echo(printable(told.text))
        return
    found = api.diagnose(source, candidate, device=device, tools=tool, sass=sass)
    if json:
        say_json(found.to_public())
    else:
        from kernelpro.dashboard.pages import diagnosis_page

        say(diagnosis_page(found))


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
        short_help="Say what an expert would say.",
        epilog="\b\nExamples:\n  kernelpro diagnose examples/rms_norm.py mine.py\n"
        "  kernelpro diagnose report.ncu-rep --sass kernels.cubin\n"
        "  kernelpro diagnose report.csv --json | jq '.kernels[0].findings[0]'\n",
    )(diagnose)
    app.command(short_help="List the tools and their track record.")(tools)
