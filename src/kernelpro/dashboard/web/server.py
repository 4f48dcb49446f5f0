"""Runs the application under uvicorn until interrupted."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path

import uvicorn

from kernelpro.dashboard.web.app import application
from kernelpro.dashboard.web.guard import Access, is_loopback
from kernelpro.listening import listener

REMEDY = "Choose another port with --port (0 = any free one) or another --host"
GOODBYE_S = 5
"""Seconds that open requests get when the server ends; event streams end within one."""


def serve(root: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve ``root`` until Ctrl-C. ``announce`` gets the address to open, token included.

    Beyond loopback a fresh token is needed with every start. ``UserError`` if the address cannot
    be bound.
    """
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    listening = listener(host, port, remedy=REMEDY)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    app = application(root, Access(host=host, token=token))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off",
        timeout_graceful_shutdown=GOODBYE_S,
    )  # fmt: skip
    server = uvicorn.Server(config)
    app.state.library.closing = lambda: server.should_exit
    announce(address + (f"?token={token}" if token else ""))
    with contextlib.suppress(KeyboardInterrupt):  # the usual end
        server.run(sockets=[listening])
