"""``kernelpro serve``: the dashboard."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelpro.cli import options

EXAMPLES = """\
\b
Examples:
  kernelpro serve
  kernelpro serve --port 0 --runs /shared/runs
  kernelpro serve --host 0.0.0.0     (prints an address with a token)
"""


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; beyond loopback with a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 = any free one.")] = 8350,
    runs: options.Runs = None,
) -> None:
    """Show runs in the browser, live while they go on. Read-only; Ctrl-C ends it.

    Every run of the folder, each attempt with code, advice and evidence, comparisons, and the
    spread of all speed-ups. Needs no network; nothing can be started or changed from there.
    """
    from kernelpro import api

    api.serve(host=host, port=port, runs_root=runs, announce=_announce)


def _announce(address: str) -> None:
    typer.echo(f"Runs are at {address} (Ctrl-C ends this)")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(short_help="Show runs in the browser, live.", epilog=EXAMPLES)(serve)
