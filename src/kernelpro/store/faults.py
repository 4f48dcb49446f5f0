"""Turns complaints of SQLite and the file system into a ``StoreError`` that says what to do."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kernelpro.errors import StoreError

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextlib.contextmanager
def store_errors(folder: Path) -> Iterator[None]:
    """Translate ``sqlite3`` and ``OSError`` failures below it, naming the run folder."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_explain_sqlite(folder, error)) from error
    except OSError as error:
        raise StoreError(_explain_os(folder, error)) from error


def _explain_sqlite(folder: Path, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_FULL"):
        return _full(folder)
    if name.startswith("SQLITE_READONLY"):
        return _read_only(folder)
    if name.startswith("SQLITE_NOTADB") or "no such table" in str(error):
        return (
            f"The run in {folder} is damaged beyond reading ({error}). Put run.sqlite back from a "
            "copy; sources, logs and profiles are still in its folder blobs, without their order"
        )
    if name.startswith("SQLITE_CORRUPT") or isinstance(error, sqlite3.IntegrityError):
        return (
            f"The run in {folder} is damaged ({error}). "
            f"See what is left with: kernelpro runs verify {folder}"
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"The run in {folder} is in use by another process; try again when it is done"
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        return (
            f"The run in {folder} cannot be read or written ({error}). Check free space, "
            "permissions, and that the folder is on a local disk"
        )
    return (
        f"The run in {folder} cannot be used: {error}. See what is left with: kernelpro runs "
        f"verify {folder}"
    )


def _explain_os(folder: Path, error: OSError) -> str:
    if error.errno in _DISK_FULL:
        return _full(folder)
    if error.errno in _READ_ONLY:
        return _read_only(folder)
    return f"The run in {folder} cannot be used: {error}"


def _full(folder: Path) -> str:
    return (
        f"The disk is full: the last step of the run in {folder} was not saved. Free some space, "
        f"then go on with: kernelpro optimize --resume {folder}"
    )


def _read_only(folder: Path) -> str:
    return (
        f"The run folder {folder} cannot be written. Give yourself write permission or copy it "
        "to a place you can write to"
    )
