"""The index of a campaign: which problems, which run each has, and how each stands.

One SQLite file beside the runs. The runs are the truth about evaluations; the index only says
where they are, so that a campaign whose controller died goes on where it was.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kernelpro.errors import StoreError, UserError
from kernelpro.schema.codec import CONFIG, dumps, from_jsonable, loads
from kernelpro.schema.config import RunConfig
from kernelpro.schema.problem import Problem

INDEX = "campaign.sqlite"
FORMAT = 1
State = Literal["waiting", "running", "finished", "failed"]
"""``failed``: it cannot go on by itself; ``detail`` says why."""

_TABLES = """
CREATE TABLE campaign (id TEXT NOT NULL, config TEXT NOT NULL, kinds TEXT NOT NULL) STRICT;
CREATE TABLE entry (
    position INTEGER PRIMARY KEY, name TEXT NOT NULL, problem TEXT, run_id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL, detail TEXT NOT NULL, speedup REAL, keep_eager INTEGER,
    evaluations INTEGER NOT NULL
) STRICT;
CREATE TABLE sitting (number INTEGER PRIMARY KEY, began TEXT NOT NULL, last TEXT NOT NULL) STRICT;
CREATE TABLE set_aside (at TEXT NOT NULL, verdict TEXT NOT NULL, job_id TEXT, reason TEXT NOT NULL)
    STRICT;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One problem of a campaign."""

    position: int
    name: str
    run_id: str
    state: State
    detail: str = ""
    """Why the run ended, or why it failed."""
    speedup: float | None = None
    """Over eager, measured again; None if eager is to be kept or nothing is known yet."""
    keep_eager: bool | None = None
    evaluations: int = 0

    __pydantic_config__ = CONFIG


class SetAside(NamedTuple):
    """A result that was not counted."""

    at: str
    verdict: str
    job_id: str | None
    reason: str


class CampaignIndex:
    """Safe to use from several threads of one process."""

    def __init__(self, folder: Path) -> None:
        """Open the index in ``folder``; ``UserError`` if there is none, ``StoreError`` if it is
        of another version."""
        self.folder = folder
        path = folder / INDEX
        if not path.is_file():
            raise UserError(
                f"{folder} holds no campaign: {INDEX} is missing. Begin one: kernelpro campaign "
                f"run {folder} PROBLEM..."
            )
        self._guard = threading.Lock()
        self._db = _connect(path)
        ((version,),) = self._db.execute("PRAGMA user_version").fetchall()
        if version != FORMAT:
            self._db.close()
            raise StoreError(f"{path} is of version {version}; this kernelpro reads {FORMAT}")
        ((self.id, config, self.kinds),) = self._query("SELECT id, config, kinds FROM campaign")
        self.config = loads(RunConfig, config)

    @classmethod
    def create(
        cls, folder: Path, campaign_id: str, config: RunConfig, kinds: str,
        problems: Sequence[tuple[Entry, Problem | None]],
    ) -> CampaignIndex:  # fmt: skip
        """A new index; ``StoreError`` if the folder has one."""
        path = folder / INDEX
        if path.exists():
            raise StoreError(
                f"{folder} already holds a campaign. Go on with it: kernelpro campaign resume "
                f"{folder}"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Whole or not there: a campaign that was killed while it was made can be made again.
            partial = path.with_suffix(".new")
            partial.unlink(missing_ok=True)
            db = _connect(partial)
            db.executescript(_TABLES)
            db.execute("BEGIN")
            db.execute("INSERT INTO campaign VALUES (?, ?, ?)",
                       (campaign_id, dumps(config), kinds))  # fmt: skip
            for entry, problem in problems:
                db.execute(
                    "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, 0)",
                    (entry.position, entry.name, dumps(problem) if problem else None,
                     entry.run_id, entry.state, entry.detail),
                )  # fmt: skip
            db.execute("COMMIT")
            db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("PRAGMA journal_mode = DELETE")
            db.close()
            partial.rename(path)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The campaign in {folder} cannot be made: {error}") from error
        return cls(folder)

    @property
    def runs(self) -> Path:
        """Where the runs of the campaign live."""
        return self.folder / "runs"

    def entries(self) -> list[Entry]:
        """All problems, in the order they were given."""
        rows = self._query(
            "SELECT position, name, run_id, state, detail, speedup, keep_eager, evaluations "
            "FROM entry ORDER BY position"
        )
        names = ("position", "name", "run_id", "state", "detail", "speedup", "keep_eager",
                 "evaluations")  # fmt: skip
        return [
            from_jsonable(Entry, {**dict(zip(names, row, strict=True)),
                                  "keep_eager": None if row[6] is None else bool(row[6])})
            for row in rows
        ]  # fmt: skip

    def problem(self, position: int) -> Problem:
        """The problem of an entry; ``StoreError`` for one that could not be read."""
        ((text,),) = self._query("SELECT problem FROM entry WHERE position = ?", (position,))
        if text is None:
            raise StoreError(f"Entry {position} of the campaign has no problem: it was not read")
        return loads(Problem, text)

    def note(
        self, position: int, state: State, detail: str = "", *, speedup: float | None = None,
        keep_eager: bool | None = None, evaluations: int = 0,
    ) -> None:  # fmt: skip
        """How an entry stands now."""
        self._change(
            "UPDATE entry SET state = ?, detail = ?, speedup = ?, keep_eager = ?, evaluations = ? "
            "WHERE position = ?",
            (state, detail, speedup, keep_eager, evaluations, position),
        )

    def sit_down(self) -> int:
        """A controller begins to work on the campaign; the number of its sitting."""
        now = _now()
        with self._guard:
            cursor = self._db.execute("INSERT INTO sitting (began, last) VALUES (?, ?)", (now, now))
            return int(cursor.lastrowid or 0)

    def still_here(self, sitting: int) -> None:
        """The controller of ``sitting`` is at work."""
        self._change("UPDATE sitting SET last = ? WHERE number = ?", (_now(), sitting))

    def worked_s(self) -> float:
        """Seconds of all sittings."""
        moment = datetime.datetime.fromisoformat
        rows = self._query("SELECT began, last FROM sitting")
        return sum((moment(last) - moment(began)).total_seconds() for began, last in rows)

    def set_aside(self, verdict: str, job_id: str | None, reason: str) -> None:
        """Keep on record that a result did not count."""
        self._change("INSERT INTO set_aside VALUES (?, ?, ?, ?)", (_now(), verdict, job_id, reason))

    def all_set_aside(self) -> list[SetAside]:
        """Results that did not count, oldest first."""
        return [SetAside(*row) for row in self._query("SELECT * FROM set_aside ORDER BY rowid")]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._guard:
            return self._db.execute(sql, values).fetchall()

    def _change(self, sql: str, values: tuple[Any, ...]) -> None:
        try:
            with self._guard:
                self._db.execute(sql, values)
        except sqlite3.Error as error:
            raise StoreError(
                f"The index of the campaign in {self.folder} cannot be written: {error}"
            ) from error


def read_live(folder: Path) -> dict[str, Any] | None:
    """What the controller last said about its workers; None if nothing readable."""
    try:
        found = json.loads((folder / LIVE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


LIVE = "live.json"
"""The executor's capacity and health, written now and then while a controller is at work."""


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30.0)
    db.execute("PRAGMA synchronous = FULL")
    return db


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
