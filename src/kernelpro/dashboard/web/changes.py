"""Server-sent events of one run: that it changed, that it is still there, that it was deleted.

Events carry no content: the page fetches what it shows, so a slow reader never falls behind.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
from anyio import to_thread

from kernelpro.dashboard.web.library import Library
from kernelpro.errors import StoreError

POLL_S = 0.5
HEARTBEAT = 20
"""Polls without news after which a comment keeps the connection from being dropped."""


async def run_changes(library: Library, name: str) -> AsyncIterator[str]:
    """One ``change`` at once and after every recorded event; ``gone`` ends the stream."""
    seen, quiet = (-1, ""), 0
    while not library.closing():
        try:
            now = await to_thread.run_sync(_look, library, name)
        except (KeyError, StoreError):
            yield _event("gone", {})
            return
        if now != seen:
            seen, quiet = now, 0
            yield _event("change", {"seq": now[0], "state": now[1]})
        quiet += 1
        if quiet % HEARTBEAT == 0:
            yield ": still here\n\n"
        await anyio.sleep(POLL_S)


async def list_changes(library: Library) -> AsyncIterator[str]:
    """A ``change`` whenever the list of runs does."""
    seen: object = None
    quiet = 0
    while not library.closing():
        now = await to_thread.run_sync(library.summaries)
        if now != seen:
            if seen is not None:
                yield _event("change", {})
            seen, quiet = now, 0
        quiet += 1
        if quiet % HEARTBEAT == 0:
            yield ": still here\n\n"
        await anyio.sleep(2 * POLL_S)


def _look(library: Library, name: str) -> tuple[int, str]:
    stored = library.get(name)
    return stored.seq, stored.state()


def _event(name: str, data: dict[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
