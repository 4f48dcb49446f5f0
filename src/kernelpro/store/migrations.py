"""The database schema as numbered steps; the file's ``user_version`` is the last one applied.

Never edit a step that was released: add one. ``READABLE_FROM`` is the oldest version whose tables
a reader still understands without migrating.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from kernelpro.errors import StoreError

APPLICATION_ID = 0x6B65726E
"""``kern`` in ASCII: tells a run from any other SQLite file."""
READABLE_FROM = 1


def _m1_events(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE event (
            seq     INTEGER PRIMARY KEY,
            at      TEXT NOT NULL,
            kind    TEXT NOT NULL,
            node_id TEXT,
            status  TEXT,
            speedup REAL,
            payload TEXT NOT NULL,
            chain   TEXT NOT NULL
        ) STRICT
        """
    )
    db.execute("CREATE UNIQUE INDEX event_node ON event (node_id) WHERE node_id IS NOT NULL")


def _m2_append_only(db: sqlite3.Connection) -> None:
    for verb in ("UPDATE", "DELETE"):
        db.execute(
            f"CREATE TRIGGER event_no_{verb.lower()} BEFORE {verb} ON event "
            "BEGIN SELECT RAISE(ABORT, 'the event table is append-only'); END"
        )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_m1_events, _m2_append_only)
CURRENT = len(MIGRATIONS)


def migrate(db: sqlite3.Connection) -> None:
    """Apply the missing steps, each in a transaction of its own."""
    for number in range(version(db) + 1, CURRENT + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            MIGRATIONS[number - 1](db)
            db.execute(f"PRAGMA user_version = {number}")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        except sqlite3.Error:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")


def check_version(db: sqlite3.Connection, folder: Path) -> None:
    """``StoreError`` unless the file is a run this kernelpro can read."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    number = version(db)
    if number == 0 and application == 0:
        raise StoreError(f"The run in {folder} was never started: it holds no events")
    if application != APPLICATION_ID:
        raise StoreError(f"{folder / 'run.sqlite'} is an SQLite file, but not a kernelpro run")
    if number > CURRENT:
        raise StoreError(
            f"The run in {folder} has format {number}; this kernelpro knows up to {CURRENT}. "
            "Upgrade kernelpro to read it"
        )
    if number < READABLE_FROM:
        raise StoreError(f"The run in {folder} has format {number}, older than {READABLE_FROM}")


def version(db: sqlite3.Connection) -> int:
    """Number of the last migration applied."""
    (number,) = db.execute("PRAGMA user_version").fetchone()
    return int(number)
