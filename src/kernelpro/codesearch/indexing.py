"""Brings an index up to date with its tree: only files that changed are read again."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from pathlib import Path
from typing import Literal, NamedTuple

from kernelpro.codesearch.database import writing
from kernelpro.codesearch.symbols import find_definitions
from kernelpro.codesearch.tree import DOCUMENTS, Listed, list_tree, read_source
from kernelpro.codesearch.words import index_words, without_license
from kernelpro.text import content_hash

CHUNK_LINES, CHUNK_STEP = 80, 60
"""Chosen: measured best of a few on CUTLASS; the overlap keeps a function in one piece."""
BINARY = "binary"
"""Stands for the hash of a file that is no text; it is remembered so as not to be read again."""
_EXAMPLE_FOLDER = re.compile(r"(?:^|/)(?:examples?|tests?|samples?|tutorials?)/")


class Refreshed(NamedTuple):
    """What a refresh did, and every file that is left out with the reason."""

    changed: int
    removed: int
    skipped: tuple[tuple[str, str], ...]


def refresh(db: sqlite3.Connection, root: Path) -> Refreshed:
    """Index what is new or changed under ``root`` and drop what is gone."""
    tree = list_tree(root)
    known = {row[0]: row[1:] for row in db.execute("SELECT path, size, mtime_ns, id FROM files")}
    stale = [
        file for file in tree.files if known.get(file.path, ())[:2] != (file.size, file.mtime_ns)
    ]
    gone = known.keys() - {file.path for file in tree.files}
    unreadable: list[tuple[str, str]] = []
    changed = 0
    if stale or gone:
        with writing(db):
            for path in gone:
                _forget(db, path)
            for file in stale:
                try:
                    changed += _index_file(db, tree.root, file)
                except OSError as error:
                    unreadable.append((file.path, error.strerror or "unreadable"))
                    _forget(db, file.path)
    query = "SELECT path FROM files WHERE hash = ? ORDER BY path"
    binary = [(path, "binary") for (path,) in db.execute(query, (BINARY,))]
    return Refreshed(changed, len(gone), (*tree.skipped, *unreadable, *binary))


def kind_of(path: str) -> Literal["code", "example", "doc"]:
    """Documentation by suffix, examples by folder, else code."""
    if Path(path).suffix.lower() in DOCUMENTS:
        return "doc"
    return "example" if _EXAMPLE_FOLDER.search(path) else "code"


def _index_file(db: sqlite3.Connection, root: Path, file: Listed) -> bool:
    """Index one file; whether its content had really changed."""
    text = read_source(root, file)
    digest = BINARY if text is None else content_hash(text)
    text = text or ""
    old = db.execute("SELECT id, hash FROM files WHERE path = ?", (file.path,)).fetchone()
    if old and old[1] == digest:
        db.execute("UPDATE files SET size = ?, mtime_ns = ? WHERE id = ?",
                   (file.size, file.mtime_ns, old[0]))  # fmt: skip
        return False
    _forget(db, file.path)
    inserted = db.execute(
        "INSERT INTO files (path, size, mtime_ns, hash, kind, lines, text) VALUES (?,?,?,?,?,?,?)",
        (file.path, file.size, file.mtime_ns, digest, kind_of(file.path), text.count("\n") + 1,
         zlib.compress(text.encode("utf-8", "surrogatepass"), 1)),
    )  # fmt: skip
    number = int(inserted.lastrowid or 0)
    for table, row, words in _rows(db, number, file.path, text):
        db.execute(f"INSERT INTO {table} (rowid, words) VALUES (?, ?)", (row, words))
    return True


def _rows(db: sqlite3.Connection, number: int, path: str, text: str) -> list[tuple[str, int, str]]:
    """Insert a file's chunks and symbols; the full-text rows that go with them."""
    rows = [("path_words", number, index_words(path))]
    for first, last, words in _chunks(text):
        row = db.execute("INSERT INTO chunks (file, first_line, last_line) VALUES (?, ?, ?)",
                         (number, first, last))  # fmt: skip
        rows.append(("chunk_words", int(row.lastrowid or 0), words))
    for symbol in find_definitions(path, text):
        row = db.execute(
            "INSERT INTO symbols (file, line, name, lower, scope, kind, signature, parameters, doc)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, symbol.line, symbol.name, symbol.name.lower(), symbol.scope, symbol.kind,
             symbol.signature, json.dumps(symbol.template_parameters), symbol.doc),
        )  # fmt: skip
        rows.append(("symbol_words", int(row.lastrowid or 0),
                     _symbol_words(symbol.name, symbol.doc)))  # fmt: skip
    return rows


def _chunks(text: str) -> list[tuple[int, int, str]]:
    """(First line, last line, words) of every overlapping piece of a file."""
    words = [index_words(line) for line in without_license(text).split("\n")]
    starts = range(0, max(1, len(words) - CHUNK_LINES + CHUNK_STEP), CHUNK_STEP)
    return [
        (
            start + 1,
            min(start + CHUNK_LINES, len(words)),
            " ".join(words[start : start + CHUNK_LINES]),
        )
        for start in starts
    ]


def _symbol_words(name: str, doc: str) -> str:
    return index_words(f"{name} {doc}")


def _forget(db: sqlite3.Connection, path: str) -> None:
    """Take a file out of every table; the full-text tables want the words they were given."""
    found = db.execute("SELECT id, text FROM files WHERE path = ?", (path,)).fetchone()
    if not found:
        return
    number, text = int(found[0]), stored_text(found[1])
    remove = "INSERT INTO {0} ({0}, rowid, words) VALUES ('delete', ?, ?)"
    db.execute(remove.format("path_words"), (number, index_words(path)))
    chunks = db.execute("SELECT id FROM chunks WHERE file = ? ORDER BY id", (number,)).fetchall()
    for (row,), (_, _, words) in zip(chunks, _chunks(text), strict=True):
        db.execute(remove.format("chunk_words"), (row, words))
    symbols = db.execute("SELECT id, name, doc FROM symbols WHERE file = ?", (number,)).fetchall()
    for row, name, doc in symbols:
        db.execute(remove.format("symbol_words"), (row, _symbol_words(name, doc)))
    db.execute("DELETE FROM chunks WHERE file = ?", (number,))
    db.execute("DELETE FROM symbols WHERE file = ?", (number,))
    db.execute("DELETE FROM files WHERE id = ?", (number,))


def stored_text(blob: bytes) -> str:
    """A file's text as it was indexed."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")
