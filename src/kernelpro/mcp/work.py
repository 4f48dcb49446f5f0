"""Runs one operation of the API for a client: in a thread, with progress, one at a time where a
device is measured."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from kernelpro.errors import KernelproError
from kernelpro.text import printable

Result = TypeVar("Result")

TICK_S = 2.0
"""Between two notices of progress (chosen: a client's patience is tens of seconds)."""
_POLL_S = 0.1


async def perform(
    ctx: Context, what: str, operation: Callable[[], Result], device_lock: Path | None = None
) -> Result:
    """The result of ``operation``; kernelpro's own errors become the tool's error message.

    ``device_lock``: a file that only one process at a time may hold while it measures. A client
    that goes away does not interrupt the operation: what it would have heard is on record.
    """
    done: list[Result] = []
    failures: list[KernelproError] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_tell_progress, ctx, what)
        async with _turn(device_lock):
            with anyio.CancelScope(shield=True):
                try:
                    done.append(await anyio.to_thread.run_sync(operation))
                except KernelproError as error:
                    failures.append(error)
        group.cancel_scope.cancel()
    # Not inside: a task group would wrap it in a group of exceptions.
    if failures:
        raise ToolError(printable(str(failures[0]))) from failures[0]
    return done[0]


async def _tell_progress(ctx: Context, what: str) -> None:
    began = time.monotonic()
    while True:
        await anyio.sleep(TICK_S)
        elapsed_s = time.monotonic() - began
        await ctx.report_progress(elapsed_s, None, f"{what}, {elapsed_s:.0f} s")


@contextlib.asynccontextmanager
async def _turn(lock: Path | None) -> AsyncIterator[None]:
    """Waits until nobody else measures: two evaluations at once would disturb each other."""
    if lock is None:
        yield
        return
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await anyio.sleep(_POLL_S)
        yield  # closing the file gives the lock back
