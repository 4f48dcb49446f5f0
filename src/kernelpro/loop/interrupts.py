"""Ctrl-C and SIGTERM end a run cleanly: they interrupt work, but never a record being written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While installed, a signal raises ``KeyboardInterrupt``; inside :meth:`held_off`, after it."""

    def __init__(self) -> None:
        self._shields = 0
        self._pending = False

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Take the signals over; outside the main thread they keep their usual handlers."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def held_off(self) -> Iterator[None]:
        """Delay an interrupt until the block is done."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._pending and not self._shields:
            self._pending = False
            raise KeyboardInterrupt

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._shields:
            self._pending = True
        else:
            raise KeyboardInterrupt
