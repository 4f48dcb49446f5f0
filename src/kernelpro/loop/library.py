"""The library of lessons across runs: opt in, one SQLite file, evaluator's verdicts only.

A run reads the lessons of its device and operator family once, at its start, and keeps them in
its first event: what others add later cannot change a resumed run. At its end it adds what the
referee told it about every named move. Writers are shown the lessons that fit the bottleneck of
the version they work on, as memory entries.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kernelpro.errors import UserError
from kernelpro.loop.memory import judgement, one_line
from kernelpro.loop.state import RunState
from kernelpro.schema.event import NodeFinished
from kernelpro.schema.finding import Diagnosis, Severity
from kernelpro.schema.graph import Graph
from kernelpro.schema.library import Lesson
from kernelpro.schema.memory import MemoryCategory, MemoryEntry
from kernelpro.schema.proposal_request import Attempt

LESSONS_SHOWN = 12
"""Lessons a writer is shown at once, the best supported first (chosen: a screenful)."""
_BUSY_TIMEOUT_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS trial (
    run TEXT NOT NULL, node TEXT NOT NULL, device TEXT NOT NULL, family TEXT NOT NULL,
    bottleneck TEXT NOT NULL, finding TEXT NOT NULL, move TEXT NOT NULL, verdict TEXT NOT NULL,
    log_gain REAL, PRIMARY KEY (run, node)) STRICT;
"""
_REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "softmax", "norm", "prod", "max.", "min.")


class Situation(NamedTuple):
    """What kept the version from being faster that a move was made on."""

    bottleneck: str
    finding: str


class Library:
    """The lessons in one file, made if it is not there; ``UserError`` if it cannot be used."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).expanduser()

    def lessons(self, device: str, family: str) -> tuple[Lesson, ...]:
        """What is known for ``device`` (its name) and ``family``, best supported first."""
        with self._opened() as db:
            rows = db.execute(
                "SELECT bottleneck, finding, move, sum(verdict = 'pattern'), "
                "sum(verdict = 'learning'), sum(verdict = 'error'), avg(log_gain), "
                "count(DISTINCT run) FROM trial WHERE device = ? AND family = ? "
                "GROUP BY bottleneck, finding, move ORDER BY count(*) DESC, bottleneck, finding, "
                "move", (device, family),
            ).fetchall()  # fmt: skip
        return tuple(
            Lesson(
                device=device, family=family, bottleneck=bottleneck, finding=finding, move=move,
                gained=gained, futile=futile, failed=failed, runs=runs,
                gain=None if log_gain is None else math.exp(log_gain),
            )
            for bottleneck, finding, move, gained, futile, failed, log_gain, runs in rows
        )  # fmt: skip

    def add(self, state: RunState, events: Iterable[NodeFinished]) -> int:
        """Put the verdicts of a run in; a run that is added again replaces what it said before.

        Returns how many there are.
        """
        started = state.started
        family = family_of(started.graphs)
        rows = [
            (started.run_id, node, started.device.name, family, *situation, move, verdict, log_gain)
            for node, situation, move, verdict, log_gain in _verdicts(state, events)
        ]
        with self._opened() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM trial WHERE run = ?", (started.run_id,))
            db.executemany("INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            db.execute("COMMIT")
        return len(rows)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(
                sqlite3.connect(self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
            ) as db:
                db.executescript(_SCHEMA)
                yield db
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"The library of lessons {self.path} cannot be used: {error}"
            ) from error


def family_of(graphs: Sequence[Graph]) -> str:
    """``matmul``, ``reduction`` or ``elementwise``; ``unknown`` without a graph."""
    if not graphs:
        return "unknown"
    if any(graph.has_matmul for graph in graphs):
        return "matmul"
    operators = [node.op for graph in graphs for node in graph.nodes]
    reduces = any(op.removeprefix("aten.").lstrip("_").startswith(_REDUCTIONS)
                  or "norm" in op for op in operators)  # fmt: skip
    return "reduction" if reduces else "elementwise"


def situation_of(diagnosis: Diagnosis | None) -> Situation:
    """Class of the hottest kernel and the first finding that asks for something."""
    if diagnosis is None or not diagnosis.kernels:
        return Situation("unknown", "")
    urgent = (f.tool for f in diagnosis.ranked() if f.severity is not Severity.INFO)
    return Situation(diagnosis.kernels[0].roofline_class, next(urgent, ""))


def shown(lessons: Sequence[Lesson], parent: Attempt | None) -> tuple[MemoryEntry, ...]:
    """The lessons that fit the bottleneck of ``parent``, those of its very finding first."""
    if parent is None:
        return ()
    now = situation_of(parent.diagnosis)
    fitting = [lesson for lesson in lessons if lesson.bottleneck == now.bottleneck]
    fitting.sort(key=lambda lesson: lesson.finding != now.finding)
    return tuple(_entry(-n, lesson) for n, lesson in enumerate(fitting[:LESSONS_SHOWN], start=1))


def _entry(number: int, lesson: Lesson) -> MemoryEntry:
    """As memory; negative numbers, so that it is never taken for one of the run's own entries."""
    category: MemoryCategory = "pattern" if lesson.balance > 0 else "learning"
    tries = lesson.gained + lesson.futile + lesson.failed
    gain = "" if lesson.gain is None else f", {lesson.gain:.3g}x on average"
    text = (
        f"{lesson.move}: in {lesson.runs} earlier runs gained {lesson.gained} of {tries} times"
        f"{gain}, failed {lesson.failed}"
    )
    return MemoryEntry(
        id=number, category=category, text=one_line(text), candidate_id=None, move=lesson.move,
        conditions=f"library: {lesson.bottleneck} {lesson.finding}".rstrip(),
    )  # fmt: skip


def _verdicts(
    state: RunState, events: Iterable[NodeFinished]
) -> Iterator[tuple[str, Situation, str, str, float | None]]:
    """(node, situation, move, verdict, log of the gain) of every move that could be judged."""
    for event in events:
        candidate, outcome = event.candidate, event.outcome
        if candidate is None or outcome is None or event.duplicate_of is not None:
            continue
        move = candidate.proposal.move
        if move is None or candidate.parent_id is None:
            continue
        parent = state.archive.attempt(candidate.parent_id)
        found = judgement(candidate, outcome, parent.outcome)
        if found is None or not parent.outcome.speedup:
            continue
        gain = math.log(outcome.speedup / parent.outcome.speedup) if outcome.speedup else None
        yield candidate.id, situation_of(parent.diagnosis), move, found[0], gain
