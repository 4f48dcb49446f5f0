"""A bank of real evaluations: every distinct candidate of a problem is measured once, for good.

Comparing searches needs the same candidates again and again: five arms with five seeds each meet
most sources many times. The bank keeps what the referee found for each source (raw samples of
every round, the baseline beside it) and the profile; arms replay from it and measure what it
lacks. One SQLite file, one transaction per measurement: it can be filled, stopped and filled on.
"""

from __future__ import annotations

import sqlite3
import statistics
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpro.errors import StoreError
from kernelpro.schema.codec import dumps, loads
from kernelpro.schema.event import RunStarted
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Profile
from kernelpro.text import content_hash

_SCHEMA = """
CREATE TABLE IF NOT EXISTS problem (
    name TEXT PRIMARY KEY, source_hash TEXT NOT NULL, started BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS candidate (
    problem TEXT NOT NULL, source_hash TEXT NOT NULL, source BLOB NOT NULL, profile BLOB,
    PRIMARY KEY (problem, source_hash)) STRICT;
CREATE TABLE IF NOT EXISTS measurement (
    problem TEXT NOT NULL, source_hash TEXT NOT NULL, number INTEGER NOT NULL,
    outcome BLOB NOT NULL, PRIMARY KEY (problem, source_hash, number)) STRICT;
"""
_BUSY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known about one candidate."""

    outcomes: tuple[Outcome, ...]
    """One per time it was measured, each in a session of its own."""
    profile: Profile | None
    """Of the first accepted measurement; None if none was accepted."""

    @property
    def speedup(self) -> float | None:
        """The best estimate: geometric mean over the accepted measurements; None if none was."""
        found = [o.speedup for o in self.outcomes if o.speedup is not None]
        return statistics.geometric_mean(found) if found else None


class Bank:
    """Measurements by problem name and source hash; those read or added stay in memory."""

    def __init__(self, path: Path | str) -> None:
        """Open or create; ``StoreError`` if ``path`` is not a bank."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
        try:
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path} is not a bank of evaluations: {error}") from error
        self._known: dict[tuple[str, str], Measured] = {}

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def started(self, problem: str, source_hash: str) -> RunStarted | None:
        """The facts runs on ``problem`` start from; None if it is not in the bank.

        ``StoreError`` if another problem of that name is.
        """
        row = self._db.execute(
            "SELECT source_hash, started FROM problem WHERE name = ?", (problem,)
        ).fetchone()
        if row is None:
            return None
        if row[0] != source_hash:
            raise StoreError(
                f"{self.path} holds evaluations of another problem called {problem!r}: it was "
                "changed since. Use a new bank, or restore the problem"
            )
        return loads(RunStarted, _unpacked(row[1]))

    def add_problem(self, started: RunStarted) -> None:
        """Put a problem in."""
        self._db.execute(
            "INSERT INTO problem VALUES (?, ?, ?)",
            (started.problem.name, started.problem.source_hash, _packed(started)),
        )

    def get(self, problem: str, source: str) -> Measured | None:
        """What is known about ``source``; None if it was never measured."""
        return self._get(problem, content_hash(source))

    def add(self, problem: str, source: str, outcome: Outcome, profile: Profile | None) -> Measured:
        """Record one measurement; returns all that is known now."""
        source_hash = content_hash(source)
        before = self._get(problem, source_hash)
        number = len(before.outcomes) if before else 0
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            self._db.execute(
                "INSERT INTO candidate VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET profile = coalesce(candidate.profile, excluded.profile)",
                (problem, source_hash, _packed(source), _packed(profile) if profile else None),
            )
            self._db.execute(
                "INSERT INTO measurement VALUES (?, ?, ?, ?)",
                (problem, source_hash, number, _packed(outcome)),
            )
        self._known.pop((problem, source_hash), None)
        found = self._get(problem, source_hash)
        assert found is not None
        return found

    def sources(self, problem: str, *, measured_less_than: int | None = None) -> Iterator[str]:
        """Sources of ``problem``; only those with fewer measurements if a limit is given."""
        rows = self._db.execute(
            "SELECT source, (SELECT count(*) FROM measurement m WHERE m.problem = c.problem "
            "AND m.source_hash = c.source_hash) FROM candidate c WHERE problem = ?",
            (problem,),
        ).fetchall()
        for source, count in rows:
            if measured_less_than is None or count < measured_less_than:
                yield loads(str, _unpacked(source))

    def problems(self) -> tuple[str, ...]:
        """Names of all problems, sorted."""
        rows = self._db.execute("SELECT name FROM problem ORDER BY name").fetchall()
        return tuple(row[0] for row in rows)

    def __len__(self) -> int:
        """Distinct candidates of all problems."""
        return int(self._db.execute("SELECT count(*) FROM candidate").fetchone()[0])

    def _get(self, problem: str, source_hash: str) -> Measured | None:
        key = (problem, source_hash)
        if key not in self._known:
            rows = self._db.execute(
                "SELECT outcome FROM measurement WHERE problem = ? AND source_hash = ? "
                "ORDER BY number", key,
            ).fetchall()  # fmt: skip
            if not rows:
                return None
            (profile,) = self._db.execute(
                "SELECT profile FROM candidate WHERE problem = ? AND source_hash = ?", key
            ).fetchone()
            self._known[key] = Measured(
                tuple(loads(Outcome, _unpacked(row[0])) for row in rows),
                loads(Profile, _unpacked(profile)) if profile else None,
            )
        return self._known[key]


def _packed(value: Any) -> bytes:
    return zlib.compress(dumps(value).encode())


def _unpacked(blob: bytes) -> str:
    return zlib.decompress(blob).decode()
