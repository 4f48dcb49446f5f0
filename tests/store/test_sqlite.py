"""The event table is durable, append-only, readable while written, and says what is wrong."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from kernelpro.errors import StoreError
from kernelpro.schema.event import RunStarted
from kernelpro.store.migrations import APPLICATION_ID, CURRENT, MIGRATIONS
from kernelpro.store.sqlite import RunStore, is_begun

from .samples import asked, finished, profile, short_run, started

WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.store.samples import asked, finished, started
from kernelpro.store.sqlite import RunStore

store = RunStore.open(sys.argv[1], writable=True)
number = store.last_seq // 2
while True:
    number += 1
    store.append(asked(number))
    seq = store.append(finished(number))
    print(seq, flush=True)
"""
ROOT = str(Path(__file__).parents[2])


def filled(folder: Path, nodes: int = 3) -> Path:
    with RunStore.create(folder) as store:
        for event in short_run(nodes):
            store.append(event)
    return folder


def test_events_come_back_as_written(tmp_path: Path) -> None:
    events = short_run()
    folder = filled(tmp_path / "run")
    with RunStore.open(folder) as store:
        assert list(store.events()) == events
        assert list(store.events(after=5)) == events[5:]
        assert [r.seq for r in store.recorded()] == list(range(1, len(events) + 1))
        assert store.event(3) == events[2]
        assert store.last_seq == len(events)
        assert store.verify() == []
        with pytest.raises(StoreError, match="no event 99"):
            store.event(99)


def test_sources_and_profiles_are_blobs(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run", nodes=1)
    with RunStore.open(folder) as store:
        event = finished(1)
        assert event.candidate is not None
        assert store.get_blob(event.candidate.source_hash).decode() == (
            event.candidate.proposal.source
        )
        longest = max(len(s.row.payload) for s in store.stored())
        assert longest < 8192
    assert b"xxxxxxxx" not in (folder / "run.sqlite").read_bytes()
    assert profile().selected.startswith("xxxx")


def test_the_event_table_is_append_only(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    with sqlite3.connect(folder / "run.sqlite") as db:
        for sql in ("DELETE FROM event", "UPDATE event SET speedup = 9"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(sql)


def test_one_writer_many_readers(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with RunStore.create(folder) as writer:
        writer.append(started())
        with RunStore.open(folder) as reader:
            assert reader.last_seq == 1
            writer.append(asked(1))
            assert [type(e).__name__ for e in reader.events()] == ["RunStarted", "Asked"]
            with pytest.raises(StoreError, match="opened for reading"):
                reader.append(asked(2))
        with pytest.raises(StoreError, match=f"process {os.getpid()} on"):
            RunStore.open(folder, writable=True)
    RunStore.open(folder, writable=True).close()


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    store = RunStore.create(folder)
    store.append(started())
    ready, hold = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"x")
        os.read(hold[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        store.close()
        RunStore.open(folder, writable=True).close()
    finally:
        os.write(hold[1], b"x")
        os.waitpid(child, 0)
        for fd in (*ready, *hold):
            os.close(fd)


def test_a_view_may_read_from_its_own_thread(tmp_path: Path) -> None:
    seen: list[int] = []
    with RunStore.create(tmp_path / "run") as store:
        store.append(started())
        thread = threading.Thread(target=lambda: seen.append(len(list(store.events()))))
        thread.start()
        thread.join()
    assert seen == [1]


def test_kill_9_while_writing_loses_nothing_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with RunStore.create(folder) as store:
        store.append(started())
    for round_number in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), ROOT], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        acknowledged = int(writer.stdout.readline())
        time.sleep(0.03 * (round_number + 1))
        writer.send_signal(signal.SIGKILL)
        lines = writer.stdout.read().split()
        writer.wait()
        acknowledged = int(lines[-1]) if lines else acknowledged
        with RunStore.open(folder, writable=True) as store:
            assert store.last_seq >= acknowledged
            if (store.last_seq % 2) == 0:  # killed between the ask and its result
                store.append(finished(store.last_seq // 2))
            assert store.verify() == []
            assert not list(folder.glob("blobs/*.tmp"))


@pytest.mark.parametrize("left", ["nothing", "an empty file", "a schema without events"])
def test_a_creation_that_was_killed_is_gone_on_with(tmp_path: Path, left: str) -> None:
    if left == "an empty file":
        (tmp_path / "run.sqlite").touch()
    if left == "a schema without events":
        RunStore.create(tmp_path).close()
    assert not is_begun(tmp_path)
    with RunStore.create(tmp_path) as store:
        store.append(started())
        assert is_begun(tmp_path)
        assert store.verify() == []
    with pytest.raises(StoreError, match="already holds a run"):
        RunStore.create(tmp_path)


def test_missing_foreign_newer_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"run\.sqlite is missing"):
        RunStore.open(tmp_path / "nowhere")
    folder = filled(tmp_path / "run")
    with pytest.raises(StoreError, match="already holds a run"):
        RunStore.create(folder)

    with sqlite3.connect(folder / "run.sqlite") as db:
        db.execute(f"PRAGMA user_version = {CURRENT + 1}")
    for writable in (False, True):
        with pytest.raises(StoreError, match="Upgrade kernelpro"):
            RunStore.open(folder, writable=writable)

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with sqlite3.connect(foreign / "run.sqlite") as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA user_version = 1")
        db.execute("PRAGMA application_id = 7")
    with pytest.raises(StoreError, match="not a kernelpro run"):
        RunStore.open(foreign)

    (foreign / "run.sqlite").write_bytes(b"not a database, but long enough to look like one" * 99)
    with pytest.raises(StoreError, match="damaged"):
        RunStore.open(foreign)
    (foreign / "run.sqlite").write_bytes(b"")
    with pytest.raises(StoreError, match="never started"):
        RunStore.open(foreign)


def test_a_failed_open_leaves_the_run_unlocked(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    good = (folder / "run.sqlite").read_bytes()
    (folder / "run.sqlite").write_bytes(b"junk" * 1000)
    with pytest.raises(StoreError, match="damaged"):
        RunStore.open(folder, writable=True)
    (folder / "run.sqlite").write_bytes(good)
    RunStore.open(folder, writable=True).close()


def test_the_oldest_format_is_read_and_migrated(tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "blobs").mkdir(parents=True)
    with RunStore.create(tmp_path / "new") as store:
        store.append(started())
        (row,) = store.query("SELECT * FROM event")
        for tagged in store.blobs:
            (old / "blobs" / tagged[7:]).write_bytes(store.get_blob(tagged))
    db = sqlite3.connect(old / "run.sqlite")
    MIGRATIONS[0](db)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("PRAGMA user_version = 1")
    db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.commit()
    db.close()
    with RunStore.open(old) as store:
        assert isinstance(next(store.events()), RunStarted)
    with RunStore.open(old, writable=True) as store:
        store.append(asked(1))
        assert store.query("PRAGMA user_version") == [(CURRENT,)]
        assert store.verify() == []


def test_a_full_database_keeps_what_was_written_and_recovers(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with RunStore.create(folder) as store:
        store.append(started())
        (pages,) = store.query("PRAGMA page_count")[0]
        store.query(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="disk is full"):
            for number in range(1, 200):
                store.append(asked(number))
        written = store.last_seq
        assert written >= 1
        store.query("PRAGMA max_page_count = 1000000")
        assert store.append(asked(200)) == written + 1
        assert store.verify() == []


FULL_BLOBS = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from kernelpro.errors import StoreError
from kernelpro.store.sqlite import RunStore, is_begun

store = RunStore.open(sys.argv[1], writable=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    store.put_blob(b"x" * 100_000)
except StoreError as error:
    print(error)
"""


def test_a_blob_that_does_not_fit_leaves_no_trace(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    before = sorted(folder.glob("blobs/*"))
    command = [sys.executable, "-c", FULL_BLOBS, str(folder), ROOT]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search("disk is full.*Free some space", told)
    assert sorted(folder.glob("blobs/*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="drops from root to nobody to lose write permission")
def test_a_read_only_folder_can_be_read_and_says_why_not_written() -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        folder = filled(Path(root) / "run")
        (folder / "run.lock").chmod(0o444)
        with RunStore.open(folder) as store:  # also loads what decoding needs
            count = len(list(store.events()))
        told = as_nobody(folder)
    assert told[0] == f"{count} events"
    assert "cannot be written" in told[1]


def as_nobody(folder: Path) -> list[str]:
    """Read, then try to write, in a forked child without root's rights."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            with RunStore.open(folder) as store:
                os.write(write_end, f"{len(list(store.events()))} events\n".encode())
            RunStore.open(folder, writable=True)
        except StoreError as error:
            os.write(write_end, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        told = pipe.read().splitlines()
    os.waitpid(child, 0)
    return told


def test_a_request_waits_for_the_disk_with_the_next_event_or_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wait fewer per attempt: what rests on a request is recorded after it, in the same log."""
    waited_for: list[str] = []
    monkeypatch.setattr("kernelpro.store.sqlite.sync_file", lambda p: waited_for.append(p.name))
    full, normal = ((2,),), ((1,),)

    def waits(store: RunStore) -> tuple[tuple[object, ...], ...]:
        return tuple(store.query("PRAGMA synchronous"))

    with RunStore.create(tmp_path / "run") as store:
        store.append(started())
        assert waits(store) == full
        store.append(asked(1))
        assert waits(store) == normal
        with RunStore.open(tmp_path / "run") as reader:
            assert reader.last_seq == 2, "whoever is killed now has lost nothing"
        store.append(finished(1))
        assert waits(store) == full
    assert waited_for == []
    with RunStore.open(tmp_path / "run", writable=True) as store:
        store.append(asked(2))
    assert waited_for == ["run.sqlite-wal"]
