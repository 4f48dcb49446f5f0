"""Reads what ``nsys export --type sqlite`` writes into activities. Reads only; needs no nsys.

nsys creates tables lazily: a missing table means that nothing of its kind happened.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kernelpro.errors import UserError
from kernelpro.profiling.cuda.timeline import Activity

_COPY_KIND = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
"""CUpti_ActivityMemcpyKind."""
_EXPECTED = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "StringIds",
)


def read_sqlite(path: Path) -> list[Activity]:
    """All CUDA activities of the export, by start time.

    Raises ``UserError`` if the file is no SQLite database or no nsys export with CUDA activity.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist: expected an nsys export (--type sqlite)")
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return _read(connection, path)
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path} cannot be read as an nsys SQLite export: {error}") from None


def _read(connection: sqlite3.Connection, path: Path) -> list[Activity]:
    tables = {
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
        raise UserError(
            f"{path} holds no CUDA kernels: expected the table {_EXPECTED[0]}. Record with "
            "nsys profile --trace cuda, then nsys export --type sqlite"
        )
    strings: dict[int, str] = {}
    if "StringIds" in tables:
        strings = dict(connection.execute("SELECT id, value FROM StringIds"))
    found = _kernels(connection, strings)
    if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables:
        found += _memcpys(connection)
    if "CUPTI_ACTIVITY_KIND_MEMSET" in tables:
        found += _spans(connection, "CUPTI_ACTIVITY_KIND_MEMSET")
    if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables:
        found += _runtime(connection, strings)
    return sorted(found, key=lambda a: a.start_us)


def _kernels(connection: sqlite3.Connection, strings: dict[int, str]) -> list[Activity]:
    columns = _columns(connection, "CUPTI_ACTIVITY_KIND_KERNEL")
    name = "demangledName" if "demangledName" in columns else "shortName"
    rows = connection.execute(
        f"SELECT start, end, correlationId, {name} FROM CUPTI_ACTIVITY_KIND_KERNEL"
    )
    return [
        Activity("kernel", strings.get(label, str(label)), start / 1e3, (end - start) / 1e3, call)
        for start, end, call, label in rows
    ]


def _memcpys(connection: sqlite3.Connection) -> list[Activity]:
    rows = connection.execute(
        "SELECT start, end, correlationId, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY"
    )
    return [
        Activity(
            "memcpy", f"Memcpy {_COPY_KIND.get(kind, kind)}", start / 1e3, (end - start) / 1e3,
            call, _COPY_KIND.get(kind, ""),
        )
        for start, end, call, kind in rows
    ]  # fmt: skip


def _spans(connection: sqlite3.Connection, table: str) -> list[Activity]:
    rows = connection.execute(f"SELECT start, end, correlationId FROM {table}")
    return [
        Activity("memset", "Memset", start / 1e3, (end - start) / 1e3, call)
        for start, end, call in rows
    ]


def _runtime(connection: sqlite3.Connection, strings: dict[int, str]) -> list[Activity]:
    rows = connection.execute(
        "SELECT start, end, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
    )
    return [
        Activity("runtime", strings.get(label, str(label)), start / 1e3, (end - start) / 1e3, call)
        for start, end, call, label in rows
    ]


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
