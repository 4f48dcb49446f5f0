"""The runs under one folder: a cheap list, and up to a few opened runs kept current."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from kernelpro.dashboard.web.stored_run import StoredRun
from kernelpro.errors import StoreError
from kernelpro.store.listing import RunSummary, summarise
from kernelpro.store.sqlite import DATABASE

OPEN_RUNS = 12
"""Runs kept in memory; the one not looked at for longest is closed."""


class Library:
    """Run ids come from addresses: only names found in the folder are ever opened."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.closing: Callable[[], bool] = lambda: False
        """True once the server ends: event streams end too, instead of being cut off."""
        self._guard = threading.Lock()
        self._open: OrderedDict[str, StoredRun] = OrderedDict()
        self._summaries: dict[str, tuple[tuple[int, ...], RunSummary]] = {}

    def names(self) -> list[str]:
        """Names of the run folders, newest first (run ids sort by time)."""
        found = (path.parent.name for path in self.root.glob(f"*/{DATABASE}"))
        return sorted(found, reverse=True)

    def summaries(self) -> list[RunSummary]:
        """Every run, newest first; only those that changed are read again."""
        return [self._summary(name) for name in self.names()]

    def get(self, name: str) -> StoredRun:
        """The run, current. ``KeyError`` if there is none (any more), ``StoreError`` if damaged."""
        stored = self.open(name)
        try:
            stored.refresh()
        except StoreError:
            self._forget(name)  # it may have taken in half of what is new
            raise
        return stored

    def open(self, name: str) -> StoredRun:
        """The run as it was last looked at, which may be not at all; errors as :meth:`get`."""
        if Path(name).name != name or not (self.root / name / DATABASE).is_file():
            self._forget(name)
            raise KeyError(name)
        with self._guard:
            stored = self._open.get(name)
            if stored is not None and not stored.present():
                self._open.pop(name).close()
                stored = None
            if stored is None:
                stored = self._open[name] = StoredRun(self.root / name)
            self._open.move_to_end(name)
            while len(self._open) > OPEN_RUNS:
                self._open.popitem(last=False)[1].close()
        return stored

    def close(self) -> None:
        """Close every store."""
        with self._guard:
            while self._open:
                self._open.popitem()[1].close()

    def _forget(self, name: str) -> None:
        with self._guard:
            stored = self._open.pop(name, None)
            self._summaries.pop(name, None)
        if stored is not None:
            stored.close()

    def _summary(self, name: str) -> RunSummary:
        folder = self.root / name
        version = _version(folder)
        known = self._summaries.get(name)
        # A run that is being written also changes by its lock being dropped, without a write.
        if known is None or known[0] != version or known[1].state == "running":
            known = self._summaries[name] = (version, summarise(folder))
        return known[1]


def _version(folder: Path) -> tuple[int, ...]:
    """Changes whenever the store does: it writes to its database or the log beside it."""
    parts: list[int] = []
    for name in (DATABASE, f"{DATABASE}-wal"):
        try:
            seen = (folder / name).stat()
        except OSError:
            continue
        parts += [seen.st_ino, seen.st_mtime_ns, seen.st_size]
    return tuple(parts)
