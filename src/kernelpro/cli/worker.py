"""``kernelpro worker``: the GPU side of a spool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelpro.cli import options
from kernelpro.cli.output import problem_speaks_aside, say_json

EXAMPLES = """\
\b
Examples:
  kernelpro worker --spool /shared/spool                     on each GPU machine
  kernelpro worker --spool /shared/spool --device cuda:1     one worker per GPU
  kernelpro worker --spool copy --results back --drain       carried there and back by hand
"""


def worker(
    spool: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder with the jobs.", show_default=False)
    ],
    device: options.Device = "auto",
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where results go, to be carried back; default: DIR."),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="End when no job is left.")] = False,
    max_jobs: Annotated[int | None, typer.Option(metavar="N", help="End after N jobs.")] = None,
    idle_minutes: Annotated[
        float | None, typer.Option(metavar="M", help="End after M minutes without a job.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Shown in records; default: host and process.")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Take evaluation jobs from a shared or carried folder and put the results into it.

    Needs no network. Several workers share one folder; one that dies loses nothing. Jobs carry
    source that is compiled and run (in the sandbox): take them from people you trust.
    """
    from kernelpro import api

    limits = api.WorkOptions(
        drain=drain, max_jobs=max_jobs, idle_s=None if idle_minutes is None else idle_minutes * 60
    )

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    with problem_speaks_aside():
        served = api.work(spool, device=device, results=results, name=name, options=limits, say=say)
    if json:
        say_json(served)
    else:
        typer.echo(f"{served.jobs} jobs done by {served.worker} on {served.device}")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(epilog=EXAMPLES, short_help="Work on the jobs of a spool folder.")(worker)
