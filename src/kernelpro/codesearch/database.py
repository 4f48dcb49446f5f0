"""The index file: SQLite with full-text tables, made and opened here.

Bodies and paths are separate full-text tables, because CUTLASS puts its vocabulary into file
names and one shared length normalisation drowns it (measured: 21 of 22 questions against 14).
The full-text tables hold no text; the files' own text lies compressed beside them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kernelpro.errors import MachineError
from kernelpro.text import content_hash, short_hash

FORMAT = 1
"""Rises with every change of tables, words or definitions; an older file is made anew."""
_BUSY_S = 180.0
"""Another process may be building the same index: wait for it rather than fail."""
_TABLES = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, hash TEXT NOT NULL, kind TEXT NOT NULL, lines INTEGER NOT NULL,
    text BLOB NOT NULL) STRICT;
CREATE TABLE chunks (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL) STRICT;
CREATE INDEX chunks_of_file ON chunks (file);
CREATE TABLE symbols (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL,
    name TEXT NOT NULL, lower TEXT NOT NULL, scope TEXT NOT NULL, kind TEXT NOT NULL,
    signature TEXT NOT NULL, parameters TEXT NOT NULL, doc TEXT NOT NULL) STRICT;
CREATE INDEX symbols_of_file ON symbols (file);
CREATE INDEX symbols_by_name ON symbols (lower);
CREATE VIRTUAL TABLE chunk_words USING fts5 (words, content='',
    tokenize=\"porter ascii tokenchars '_'\");
CREATE VIRTUAL TABLE path_words USING fts5 (words, content='',
    tokenize=\"porter ascii tokenchars '_'\");
CREATE VIRTUAL TABLE symbol_words USING fts5 (words, content='',
    tokenize=\"porter ascii tokenchars '_'\");
"""


def database_path(cache_root: Path, root: Path) -> Path:
    """Where the index of ``root`` lies: one file per root folder."""
    return cache_root / "codesearch" / f"{short_hash(content_hash(str(root)), 16)}.sqlite"


def open_database(path: Path) -> sqlite3.Connection:
    """The index file, made if missing, of another format, or damaged.

    ``MachineError`` if it cannot be written, or if this SQLite has no full-text search.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _opened(path)
    except OSError as error:
        raise MachineError(
            f"The code index cannot be kept in {path.parent}: {error}. "
            "Set KERNELPRO_CACHE to a folder that can be written"
        ) from error
    except sqlite3.DatabaseError as error:
        if "fts5" in str(error):
            raise MachineError(f"This Python's SQLite {sqlite3.sqlite_version} lacks full-text "
                               f"search: {error}") from error  # fmt: skip
        if "malformed" in str(error) or "not a database" in str(error):
            path.unlink()
            return _opened(path)
        raise MachineError(f"The code index {path} cannot be opened: {error}") from error


@contextlib.contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """One transaction; other processes wait for it and then see all of it or nothing."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    if _format(db) not in (FORMAT, 0):
        db.close()
        path.unlink()
        return _opened(path)
    with writing(db):
        if _format(db) == 0:
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {FORMAT}")
    return db


def _format(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
