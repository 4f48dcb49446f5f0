"""One opened index: refreshes itself from its tree and answers every kind of question."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

from kernelpro.codesearch import excerpts, lookup, ranking
from kernelpro.codesearch.database import database_path, open_database
from kernelpro.codesearch.indexing import BINARY, Refreshed, refresh
from kernelpro.codesearch.records import (
    CodeExcerpt,
    CodeHit,
    CodeIndexState,
    CodeSymbol,
    CodeUses,
    HitKind,
)
from kernelpro.codesearch.tree import checked_root

REFRESH_S = 30.0
"""A tree is looked at again when the last look is older; a look costs some 30 ms."""
_SHOWN_SKIPPED = 50


class CodeIndex:
    """The index of one tree. Safe to use from several threads and processes."""

    def __init__(self, root: Path, cache_root: Path) -> None:
        """Open the index of ``root``; nothing is read until the first question."""
        self.root = checked_root(root)
        self.database = database_path(cache_root, self.root)
        self._db = open_database(self.database)
        self._lock = threading.Lock()
        self._looked_s: float | None = None

    def refresh(self) -> CodeIndexState:
        """Bring the index up to date now; what it holds, and what it left out and why."""
        start = time.monotonic()
        with self._lock:
            found = self._refreshed()
            seconds = time.monotonic() - start
            return self._state(found, seconds)

    def search(self, query: str, kind: HitKind, limit: int) -> list[CodeHit]:
        """See :func:`kernelpro.codesearch.ranking.search`."""
        with self._lock:
            return ranking.search(self._current(), query, kind, limit)

    def read(self, path: str, lines: str | tuple[int, int] | None) -> CodeExcerpt:
        """See :func:`kernelpro.codesearch.excerpts.read_code`."""
        with self._lock:
            return excerpts.read_code(self._current(), self.root, path, lines)

    def symbol(self, name: str, limit: int) -> list[CodeSymbol]:
        """See :func:`kernelpro.codesearch.lookup.find_symbol`."""
        with self._lock:
            return lookup.find_symbol(self._current(), name, limit)

    def usages(self, name: str, limit: int) -> CodeUses:
        """See :func:`kernelpro.codesearch.lookup.find_usages`."""
        with self._lock:
            return lookup.find_usages(self._current(), name, limit)

    def examples(self, name: str, limit: int) -> CodeUses:
        """See :func:`kernelpro.codesearch.lookup.examples_of`."""
        with self._lock:
            return lookup.examples_of(self._current(), name, limit)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _current(self) -> sqlite3.Connection:
        if self._looked_s is None or time.monotonic() - self._looked_s > REFRESH_S:
            self._refreshed()
        return self._db

    def _refreshed(self) -> Refreshed:
        found = refresh(self._db, self.root)
        self._looked_s = time.monotonic()
        return found

    def _state(self, found: Refreshed, seconds: float) -> CodeIndexState:
        count = self._db.execute(
            "SELECT count(*), coalesce(sum(lines), 0) FROM files WHERE hash <> ?", (BINARY,)
        ).fetchone()
        symbols = self._db.execute("SELECT count(*) FROM symbols").fetchone()[0]
        return CodeIndexState(
            root=str(self.root), database=str(self.database), files=count[0], symbols=symbols,
            lines=count[1], changed=found.changed, removed=found.removed, seconds=round(seconds, 3),
            skipped=found.skipped[:_SHOWN_SKIPPED], skipped_files=len(found.skipped),
        )  # fmt: skip
