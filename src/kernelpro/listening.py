"""Sockets that servers of this project listen on."""

from __future__ import annotations

import socket

from kernelpro.errors import UserError


def listener(host: str, port: int, *, remedy: str) -> socket.socket:
    """A socket that listens at ``host`` (a name, or an address of either family) and ``port``
    (0 = any free one). ``UserError`` with the reason and ``remedy`` if there can be none."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(128)  # whoever is told the address may come at once
    except OSError as error:
        raise UserError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}). {remedy}"
        ) from error
    return listening
