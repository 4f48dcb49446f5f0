"""Verify finds every kind of damage and names the place."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kernelpro.schema.event import Asked, Event, Remeasured
from kernelpro.store.sqlite import RunStore

from .samples import accepted, asked, finished, short_run, started


def problems(folder: Path) -> str:
    with RunStore.open(folder) as store:
        return "\n".join(store.verify())


def write(folder: Path, events: list[Event]) -> Path:
    with RunStore.create(folder) as store:
        for event in events:
            store.append(event)
    return folder


def edit(folder: Path, sql: str) -> None:
    db = sqlite3.connect(folder / "run.sqlite")
    for verb in ("update", "delete"):
        db.execute(f"DROP TRIGGER event_no_{verb}")
    assert db.execute(sql).rowcount == 1
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("UPDATE event SET at = '1999' WHERE seq = 3", "event 3: was changed"),
        ("UPDATE event SET speedup = 99.0 WHERE seq = 3", "event 3: its columns say"),
        ("DELETE FROM event WHERE seq = 4", "event 5: events 4 to 4 are missing"),
        ("UPDATE event SET payload = '{}' WHERE seq = 2", "event 2: its asked record is damaged"),
        ("DELETE FROM event WHERE seq = 1", "must begin with its start"),
    ],
)
def test_edited_events_are_found(tmp_path: Path, sql: str, named: str) -> None:
    folder = write(tmp_path / "run", short_run())
    assert problems(folder) == ""
    edit(folder, sql)
    assert named in problems(folder)


def test_missing_and_damaged_blobs_are_found(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", short_run())
    blobs = sorted(folder.glob("blobs/*"))
    blobs[0].unlink()
    blobs[1].write_bytes(b"other")
    text = problems(folder)
    assert "is missing" in text
    assert "has another hash" in text


def test_a_torn_database_page_is_found(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", short_run(nodes=40))
    path = folder / "run.sqlite"
    raw = bytearray(path.read_bytes())
    raw[3 * 4096 : 4 * 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    assert problems(folder)


@pytest.mark.parametrize(
    ("events", "named"),
    [
        ([], "holds no events"),
        ([started(), started()], "once"),
        ([started(), finished(1)], "not open"),
        ([started(), asked(1, "n0009")], "unknown parent n0009"),
        ([started(), asked(1), finished(1, "n0009")], "does not fit its ask"),
        ([started(), asked(1), finished(1, outcome=accepted(2.0, "sha256:1"))], "another source"),
        ([started(), Remeasured(node_id="n0001", outcome=accepted(1.0))], "unknown node n0001"),
        ([Asked(asks=())], "must begin with its start"),
    ],
)
def test_impossible_stories_are_found(tmp_path: Path, events: list[Event], named: str) -> None:
    assert named in problems(write(tmp_path / "run", events))
