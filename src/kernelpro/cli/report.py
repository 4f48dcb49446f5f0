"""``kernelpro report``: a stored run as a file to read or send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice


def report(
    run: options.Run = "latest",
    format: Annotated[
        str, typer.Option(metavar="html|markdown|json", help="What to write.")
    ] = "html",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where; default: report.* in the run folder."
        ),
    ] = None,
    runs: options.Runs = None,
) -> None:
    """Write the report of RUN: one self-contained file that needs no network. Prints its path."""
    from kernelpro import api
    from kernelpro.api.reporting import ReportFormat

    chosen = choice(format, ReportFormat, "--format")
    typer.echo(api.report(run, chosen, output=output, runs_root=runs))


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(
        short_help="Write a run as one file to read.",
        epilog="\b\nExamples:\n  kernelpro report\n  kernelpro report 20260115 --format markdown\n",
    )(report)
