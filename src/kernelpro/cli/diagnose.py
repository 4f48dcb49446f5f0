"""``kernelpro diagnose | tools``: the expert's reading, and who does the reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import say, say_json


def diagnose(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A profile saved by 'kernelpro profile --json', or a PROBLEM with a CANDIDATE.",
            show_default=False,
        ),
    ],
    candidate: Annotated[
        Path | None,
        typer.Argument(metavar="CANDIDATE", help="Python file with class ModelNew."),
    ] = None,
    device: options.Device = "auto",
    tool: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Run only this tool; repeatable.")
    ] = None,
    json: options.Json = False,
) -> None:
    """What an expert would say: ranked findings with evidence, cause and what to do."""
    from kernelpro import api

    found = api.diagnose(source, candidate, device=device, tools=tool)
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
        "  kernelpro diagnose mine.json --json | jq '.kernels[0].findings[0]'\n",
    )(diagnose)
    app.command(short_help="List the tools and their track record.")(tools)
