"""Keeps what a tool's short answer leaves out, under an address the client can read later."""

from __future__ import annotations

import threading
from collections import OrderedDict

from kernelpro.text import content_hash, short_hash

CAPACITY = 200
"""Results kept per server (chosen: a day's work; the oldest go first)."""
PREFIX = "kernelpro://results/"


class Shelf:
    """Texts by address, for one server."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, text: str) -> str:
        """Keep ``text``; returns its address."""
        key = short_hash(content_hash(text))
        with self._lock:
            self._texts[key] = text
            self._texts.move_to_end(key)
            while len(self._texts) > CAPACITY:
                self._texts.popitem(last=False)
        return PREFIX + key

    def get(self, key: str) -> str | None:
        """The text under the last part of an address; None if it is gone or never was."""
        with self._lock:
            return self._texts.get(key)
