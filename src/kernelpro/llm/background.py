"""One event loop in a daemon thread: provider clients are asynchronous, the rest of us is not."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_POLL_S = 0.25
"""How often a waiting caller looks up (chosen: an interrupt is noticed at once)."""
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(work: Coroutine[Any, Any, Result], poll: Callable[[], None] | None = None) -> Result:
    """The result of ``work``, which runs on the shared loop.

    ``poll`` is called while waiting; if it raises, the work is cancelled and the exception goes on.
    """
    future = asyncio.run_coroutine_threadsafe(work, _running_loop())
    try:
        while True:
            try:
                return future.result(_POLL_S)
            except concurrent.futures.TimeoutError:
                if future.done():
                    raise
            if poll is not None:
                poll()
    finally:
        if not future.done():
            future.cancel()


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="chat models", daemon=True).start()
        return _loop
