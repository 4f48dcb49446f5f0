"""Runs the application under uvicorn until interrupted."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from kernelpro.dashboard.web.app import application
from kernelpro.dashboard.web.guard import Access, is_loopback
from kernelpro.errors import UserError

GOODBYE_S = 5
"""Seconds that open requests get when the server ends; event streams end within one."""


def serve(root: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve ``root`` until Ctrl-C. ``announce`` gets the address to open, token included.

    Beyond loopback a fresh token is needed with every start. ``UserError`` if the address cannot
    be bound.
    """
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    listener = _bound(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    app = application(root, Access(host=host, token=token))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off",
        timeout_graceful_shutdown=GOODBYE_S,
    )  # fmt: skip
    server = uvicorn.Server(config)
    app.state.library.closing = lambda: server.should_exit
    announce(address + (f"?token={token}" if token else ""))
    with contextlib.suppress(KeyboardInterrupt):  # the usual end
        server.run(sockets=[listener])


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(128)  # whoever is told the address may come at once
    except OSError as error:
        raise UserError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}). Choose another port "
            "with --port (0 = any free one) or another --host"
        ) from error
    return listener
