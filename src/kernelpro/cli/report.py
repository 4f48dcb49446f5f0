"""``kernelpro report``: stored runs as files to read or send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import choice
from kernelpro.errors import UserError

EXAMPLES = """\
\b
Examples:
  kernelpro report
  kernelpro report 20260115 --format markdown
  kernelpro report latest --figure roofline -o roofline.png
  kernelpro report --suite
  kernelpro report RUN RUN RUN -o suite.html
  kernelpro report --suite --figure distribution -o speedups.svg
"""
SUITE_FIGURE = "distribution"


def report(
    runs_named: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Run folder, run id, the beginning of one, or 'latest' (the default). "
            "Several: one report of them all.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str, typer.Option(metavar="html|markdown|json", help="What to write.")
    ] = "html",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where; default: report.* in the run folder."
        ),
    ] = None,
    suite: Annotated[
        bool, typer.Option("--suite", help="One report of every run: the spread of speed-ups.")
    ] = False,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="One figure instead, as .svg or .png: progress, tree, roofline, energy, timing, "
            "histogram, rounds or mix; with --suite: distribution.",
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Attempt of timing, histogram, rounds, mix; default best."),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="The figure on a dark ground.")] = False,
    runs: options.Runs = None,
) -> None:
    """Write the report of RUN: one self-contained file that needs no network. Prints its path."""
    from kernelpro import api
    from kernelpro.api.reporting import ReportFormat

    chosen, named = choice(format, ReportFormat, "--format"), runs_named or []
    if figure is not None:
        target = output or Path(f"{figure}.svg")
        if (figure == SUITE_FIGURE) != (suite or len(named) > 1):
            raise UserError(
                f"--figure {SUITE_FIGURE} draws several runs (--suite, or RUN RUN), every other "
                "figure one run"
            )
        if figure == SUITE_FIGURE:
            typer.echo(api.suite_figure(named, target, dark=dark, runs_root=runs))
            return
        run = named[0] if named else "latest"
        typer.echo(api.figure(run, figure, target, node=node, dark=dark, runs_root=runs))
    elif suite or len(named) > 1:
        typer.echo(api.suite_report(named, chosen, output=output, runs_root=runs))
    else:
        run = named[0] if named else "latest"
        typer.echo(api.report(run, chosen, output=output, runs_root=runs))


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(short_help="Write runs as one file to read.", epilog=EXAMPLES)(report)
