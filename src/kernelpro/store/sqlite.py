"""The run store: one SQLite file whose append-only event table is the truth, and a blob folder.

One transaction per event, fsynced before :meth:`RunStore.append` returns, but for requests: those
are made durable by the next event, or when the run is closed. A process that is killed loses
neither. A blob is durable before the event that names it. Other processes may read meanwhile.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from kernelpro.errors import StoreError
from kernelpro.schema.event import Asked, Event
from kernelpro.store.blobs import BlobFolder, sync_file, sync_folder
from kernelpro.store.faults import store_errors
from kernelpro.store.lock import RunLock
from kernelpro.store.migrations import check_version, migrate
from kernelpro.store.rows import Row, from_row, link, to_row
from kernelpro.store.verify import verify

DATABASE = "run.sqlite"
LOCK = "run.lock"
BLOBS = "blobs"
_PAGE = 256
"""Rows read at a time."""
_BUSY_TIMEOUT_S = 30.0


class Recorded(NamedTuple):
    """An event with its place and time (UTC, ISO 8601) in the run."""

    seq: int
    at: str
    event: Event


class StoredRow(NamedTuple):
    """An event's row as it lies on disk, undecoded."""

    seq: int
    at: str
    row: Row
    chain: str


class RunStore:
    """One run folder. Made by :meth:`create` or :meth:`open`; close it, or use ``with``."""

    def __init__(self, folder: Path, db: sqlite3.Connection, lock: RunLock | None) -> None:
        self.folder = folder
        self.blobs = BlobFolder(folder / BLOBS)
        self._db = db
        self._lock = lock
        self._guard = threading.RLock()
        self._syncs = True
        """False: the latest event may not be on the disk yet."""
        self._seq, self._chain = self._last()

    @classmethod
    def create(cls, folder: Path | str) -> RunStore:
        """A new, empty run, open for writing. ``StoreError`` if the folder already holds one.

        What a creation that was killed left behind is gone on with.
        """
        folder = Path(folder)
        with store_errors(folder):
            (folder / BLOBS).mkdir(parents=True, exist_ok=True)
            lock = RunLock(folder / LOCK)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.release)
            if is_begun(folder):
                raise StoreError(
                    f"{folder} already holds a run. Go on with it "
                    f"(kernelpro optimize --resume {folder}) or choose another folder"
                )
            with store_errors(folder):
                db = undo.enter_context(contextlib.closing(_connect(folder, writable=True)))
                migrate(db)
                sync_folder(folder)
                store = cls(folder, db, lock)
            undo.pop_all()
            return store

    @classmethod
    def open(cls, folder: Path | str, *, writable: bool = False) -> RunStore:
        """An existing run, for reading or (locked, one at a time) for writing.

        ``StoreError`` if it is missing, damaged, locked by another writer, or of a newer version.
        """
        folder = Path(folder)
        if not (folder / DATABASE).is_file():
            raise StoreError(f"{folder} holds no run: {DATABASE} is missing")
        if not writable:
            return cls._opened(folder, None)
        with store_errors(folder):
            lock = RunLock(folder / LOCK)
        with contextlib.ExitStack() as undo:
            undo.callback(lock.release)
            store = cls._opened(folder, lock)
            undo.pop_all()
            return store

    @classmethod
    def _opened(cls, folder: Path, lock: RunLock | None) -> RunStore:
        with contextlib.ExitStack() as undo, store_errors(folder):
            writable = lock is not None
            db = undo.enter_context(contextlib.closing(_connect(folder, writable=writable)))
            check_version(db, folder)
            if writable:
                migrate(db)
            store = cls(folder, db, lock)
            if writable:
                store.blobs.sweep()
            undo.pop_all()
            return store

    def append(self, event: Event, *, at: str | None = None) -> int:
        """Record ``event`` durably; returns its sequence number (1, 2, ...).

        A request (``Asked``) survives the end of this process at once, and that of the machine
        with the next event: nothing can rest on it before, and a lost one is made again.
        ``at`` overrides the time stamp (imports keep the original one).
        """
        if self._lock is None:
            raise StoreError(f"The run in {self.folder} was opened for reading")
        with self._guard, store_errors(self.folder):
            row = to_row(event, self.blobs.write)
            self.blobs.sync()
            at = at or datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            seq, chain = self._seq + 1, link(self._chain, at, row)
            self._sync_commits(not isinstance(event, Asked))
            self._db.execute(
                "INSERT INTO event (seq, at, kind, node_id, status, speedup, payload, chain) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (seq, at, *row, chain),
            )
            self._seq, self._chain = seq, chain
            return seq

    def events(self, after: int = 0) -> Iterator[Event]:
        """All events after sequence number ``after``, in order."""
        return (recorded.event for recorded in self.recorded(after))

    def recorded(self, after: int = 0, *, profiles: bool = True) -> Iterator[Recorded]:
        """As :meth:`events`, with sequence number and time; ``profiles`` False leaves them out."""
        for stored in self.stored(after):
            event = self._decoded(stored.seq, stored.row.kind, stored.row.payload, profiles)
            yield Recorded(stored.seq, stored.at, event)

    def event(self, seq: int) -> Event:
        """The event with sequence number ``seq``."""
        rows = self.query("SELECT kind, payload FROM event WHERE seq = ?", (seq,))
        if not rows:
            raise StoreError(f"The run in {self.folder} has no event {seq}")
        return self._decoded(seq, str(rows[0][0]), str(rows[0][1]))

    def _decoded(self, seq: int, kind: str, payload: str, profiles: bool = True) -> Event:
        """The event in a row; what is wrong with it is said with the run and the next step."""
        try:
            return from_row(kind, payload, self.blobs.get, profiles=profiles)
        except StoreError as error:
            raise StoreError(
                f"The run in {self.folder} is damaged at event {seq}: {error}. "
                f"See what is left with: kernelpro runs verify {self.folder}"
            ) from error

    def stored(self, after: int = 0) -> Iterator[StoredRow]:
        """Undecoded rows after ``after``; read page by page, so that a writer is never held up."""
        while True:
            page = self.query(
                "SELECT seq, at, kind, node_id, status, speedup, payload, chain FROM event "
                "WHERE seq > ? ORDER BY seq LIMIT ?",
                (after, _PAGE),
            )
            for seq, at, kind, node_id, status, speedup, payload, chain in page:
                row = Row(str(kind), _text(node_id), _text(status), _number(speedup), str(payload))
                yield StoredRow(int(str(seq)), str(at), row, str(chain))
                after = int(str(seq))
            if len(page) < _PAGE:
                return

    def query(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Rows of a read-only SQL query over the ``event`` table."""
        with self._guard, store_errors(self.folder):
            return self._db.execute(sql, values).fetchall()

    @property
    def last_seq(self) -> int:
        """Sequence number of the latest event, 0 if there is none."""
        return self._last()[0]

    def put_blob(self, data: bytes | str) -> str:
        """Store ``data``; returns its tagged hash."""
        return self.blobs.put(data)

    def get_blob(self, tagged: str) -> bytes:
        """The bytes stored under ``tagged``."""
        return self.blobs.get(tagged)

    def verify(self) -> list[str]:
        """Everything that is wrong with the run, one line each; empty = sound."""
        return verify(self)

    def close(self) -> None:
        """Close the database and let the next writer in."""
        with self._guard:
            if self._lock is not None and not self._syncs:
                with contextlib.suppress(FileNotFoundError), store_errors(self.folder):
                    sync_file(self.folder / f"{DATABASE}-wal")
            self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def _sync_commits(self, wanted: bool) -> None:
        """Whether a commit waits for the disk: FULL does, NORMAL leaves it to the next that does
        (the log is one file, synced as a whole)."""
        if wanted != self._syncs:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._syncs = wanted

    def _last(self) -> tuple[int, str]:
        rows = self.query("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1")
        return (int(str(rows[0][0])), str(rows[0][1])) if rows else (0, "")


def is_begun(folder: Path | str) -> bool:
    """True if ``folder`` holds a run with its first event, or some other database."""
    folder = Path(folder)
    if not (folder / DATABASE).is_file():
        return False
    with store_errors(folder), contextlib.closing(_connect(folder, writable=False)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if "event" not in tables:
            return bool(tables)
        return db.execute("SELECT 1 FROM event LIMIT 1").fetchone() is not None


def _connect(folder: Path, *, writable: bool) -> sqlite3.Connection:
    path = (folder / DATABASE).resolve()
    uri = path.as_uri() + ("?mode=rwc" if writable else "?mode=ro")
    if not writable and _frozen(path):
        uri += "&immutable=1"
    # The controller's thread writes; a live view may read from its own. `_guard` serialises them.
    db = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    if writable:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
    return db


def _frozen(path: Path) -> bool:
    """True if a reader can neither find nor make the shared-memory file that WAL needs."""
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size > 0:
        return False
    return not os.access(path.parent, os.W_OK)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))
