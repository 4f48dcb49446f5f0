"""``kernelpro mcp``: kernelpro as tools for a coding agent."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelpro._optional import require
from kernelpro.cli import options
from kernelpro.errors import UserError
from kernelpro.listening import listener

REMEDY = "Choose another address with --http HOST:PORT"

EXAMPLE = """\
\b
Examples:
  kernelpro mcp                            for an agent that starts it itself (stdio)
  kernelpro mcp --http 127.0.0.1:8765      for several agents, at /mcp on this address
"""


def mcp(
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve over HTTP instead of stdio.", show_default=False
        ),
    ] = None,
    runs: options.Runs = None,
) -> None:
    """Serve kernelpro's operations to coding agents (Model Context Protocol).

    Whoever reaches the server can run code on this machine as you: keep it on loopback.
    """
    require("mcp", extra="mcp", purpose="The MCP server")
    from kernelpro.mcp.server import serve_http, serve_stdio

    if http is None:
        serve_stdio(runs)
        return
    host, _, port = http.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise UserError(f"--http wants HOST:PORT, for example 127.0.0.1:8765, not {http!r}")
    host = host.strip("[]")
    # Tried first: the server itself would only log that it cannot.
    listener(host, int(port), remedy=REMEDY).close()
    typer.echo(f"kernelpro tools at http://{http}/mcp (Ctrl-C ends)", err=True)
    serve_http(host, int(port), runs)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(short_help="Serve kernelpro to coding agents.", epilog=EXAMPLE)(mcp)
