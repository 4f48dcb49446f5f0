"""Search memory: what the run has learnt, kept short, and never against the evaluator's facts.

Every evaluated candidate leaves one ``fact``. If its writer named the move it made, the verdict on
that move is kept too, with the conditions it was tried under:

- ``pattern``: the move gained, beyond measurement noise;
- ``learning``: it ran but did not gain (a measurement too noisy to tell leaves no verdict);
- ``error``: it failed.

A writer that finds ``learning`` or ``error`` for its move under the same conditions should not try
it again. Limits and categories follow PAPER section 4. :meth:`Memory.learn` only decides what to
keep; the entries travel in the node's event, and :meth:`Memory.apply` takes them in, live and on
resume alike.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterable, Sequence
from typing import get_args

from kernelpro.schema.candidate import Candidate
from kernelpro.schema.finding import Diagnosis, Severity
from kernelpro.schema.memory import MEMORY_TEXT_LIMIT, MemoryCategory, MemoryEntry
from kernelpro.schema.outcome import Outcome

ENTRIES_PER_NODE = 30
"""Paper, section 4 (re-implementation)."""
CATEGORY_CHARACTERS = 8_000
"""Per category; the least used entry goes first, the oldest of equals (paper, section 4)."""

CONCLUSIVE_WIDTH = 1.1
"""Upper over lower end of the 95 % interval up to which "no difference" is a finding and not a
noisy measurement (chosen)."""

_JUDGEMENTS: tuple[MemoryCategory, ...] = ("pattern", "learning", "error")
_ORDER: tuple[MemoryCategory, ...] = ("fact", "pattern", "learning", "error", "finding", "file")


class Memory:
    """Active entries by category, and how often each was confirmed."""

    def __init__(self) -> None:
        self._active: dict[MemoryCategory, dict[int, MemoryEntry]] = {
            category: {} for category in get_args(MemoryCategory)
        }
        self._characters = dict.fromkeys(self._active, 0)
        self._uses: dict[int, int] = {}
        self._least_used: dict[MemoryCategory, list[tuple[int, int]]] = {
            c: [] for c in self._active
        }
        """Heaps of (uses, id); what is no longer so stays in until it comes up."""
        self._by_key: dict[tuple[str, ...], int] = {}
        self._last_id = 0

    def recall(self) -> tuple[MemoryEntry, ...]:
        """What a writer is shown: facts first, oldest first within a category."""
        return tuple(e for c in _ORDER for e in self._active[c].values())

    def learn(
        self, candidate: Candidate, outcome: Outcome, parent: Outcome | None,
        diagnosis: Diagnosis | None,
    ) -> tuple[MemoryEntry, ...]:  # fmt: skip
        """Entries to record for one evaluated candidate: new, confirmed, and retired ones."""
        fact = self._new(1, "fact", _fact(candidate, outcome), candidate)
        found = [fact]
        if found_out := judgement(candidate, outcome, parent):
            category, text = found_out
            entry = self._merged(self._new(2, category, text, candidate, judged=True))
            found += [entry, *self._contradicted(entry, fact)]
        if finding := _top_finding(diagnosis):
            found.append(self._merged(self._new(3, "finding", finding, candidate)))
        return tuple(found)

    def infer(
        self, entries: Iterable[MemoryEntry], beside: Sequence[MemoryEntry] = ()
    ) -> tuple[MemoryEntry, ...]:
        """Entries to record for a writer's own conclusions, at most 30 with those ``beside`` them.

        Facts outrank them: what the evaluator's verdict on the same move contradicts is left out.
        """
        kept = []
        first = len(beside) + 1
        for place, entry in enumerate(list(entries)[: ENTRIES_PER_NODE - len(beside)], first):
            renumbered = dataclasses.replace(entry, id=self._last_id + place)
            if entry.category != "fact" and not list(self._opposed(renumbered)):
                kept.append(self._merged(renumbered))
        return tuple(kept)

    def apply(self, entries: Iterable[MemoryEntry]) -> None:
        """Take recorded entries in: a known id is a confirmation, or a retirement."""
        for entry in entries:
            self._last_id = max(self._last_id, entry.id)
            category = self._active[entry.category]
            if entry.retired_by is not None:
                self._drop(entry)
            elif entry.id in category:
                self._count_use(entry)
            else:
                category[entry.id] = entry
                self._characters[entry.category] += len(entry.text)
                self._count_use(entry)
                self._by_key[_key(entry)] = entry.id
                self._evict(entry.category)

    def _new(
        self, place: int, category: MemoryCategory, text: str, candidate: Candidate, *,
        judged: bool = False,
    ) -> MemoryEntry:  # fmt: skip
        return MemoryEntry(
            id=self._last_id + place,
            category=category,
            text=one_line(text),
            candidate_id=candidate.id,
            move=candidate.proposal.move if judged else None,
            conditions=candidate.proposal.conditions if judged else "",
        )

    def _merged(self, entry: MemoryEntry) -> MemoryEntry:
        """The entry that already says so, or this one."""
        known = self._by_key.get(_key(entry))
        return entry if known is None else self._active[entry.category][known]

    def _contradicted(self, entry: MemoryEntry, fact: MemoryEntry) -> Iterable[MemoryEntry]:
        return [dataclasses.replace(e, retired_by=fact.id) for e in self._opposed(entry)]

    def _opposed(self, entry: MemoryEntry) -> Iterable[MemoryEntry]:
        """Active verdicts on the same move under the same conditions that say otherwise."""
        if entry.move is None:
            return
        for category in _JUDGEMENTS:
            if (category == "pattern") != (entry.category == "pattern"):
                key = _key(dataclasses.replace(entry, category=category))
                if (known := self._by_key.get(key)) is not None:
                    yield self._active[category][known]

    def _evict(self, name: MemoryCategory) -> None:
        category = self._active[name]
        while self._characters[name] > CATEGORY_CHARACTERS:
            uses, least = heapq.heappop(self._least_used[name])
            if least in category and self._uses[least] == uses:
                self._drop(category[least])

    def _count_use(self, entry: MemoryEntry) -> None:
        uses = self._uses[entry.id] = self._uses.get(entry.id, 0) + 1
        heapq.heappush(self._least_used[entry.category], (uses, entry.id))

    def _drop(self, entry: MemoryEntry) -> None:
        dropped = self._active[entry.category].pop(entry.id, None)
        if dropped is not None:
            self._characters[entry.category] -= len(dropped.text)
            del self._uses[entry.id]
            del self._by_key[_key(dropped)]


def one_line(text: str) -> str:
    """``text`` as one line within the entry limit."""
    line = " ".join(text.split())
    return line if len(line) <= MEMORY_TEXT_LIMIT else line[: MEMORY_TEXT_LIMIT - 3] + "..."


def _key(entry: MemoryEntry) -> tuple[str, ...]:
    """Two entries with the same key say the same."""
    if entry.move is not None:
        return (entry.category, entry.move, entry.conditions)
    return (entry.category, entry.text.lower())


def _fact(candidate: Candidate, outcome: Outcome) -> str:
    origin = f"from {candidate.parent_id}" if candidate.parent_id else "from scratch"
    if outcome.speedup is not None:
        return f"{candidate.id} {origin}: ok, {outcome.speedup:.3g}x ({candidate.proposal.title})"
    what = f"{outcome.status.value} ({candidate.proposal.title})"
    return f"{candidate.id} {origin}: {what}: {outcome.message}"


def judgement(
    candidate: Candidate, outcome: Outcome, parent: Outcome | None
) -> tuple[MemoryCategory, str] | None:
    """Verdict on the candidate's move; None if it names none, or the measurement cannot tell."""
    move = candidate.proposal.move
    if outcome.speedup is None:
        what = move or candidate.proposal.recipe or "this attempt"
        return "error", f"{what}: {outcome.status.value}: {outcome.message}"
    if move is None:
        return None
    before = parent.speedup if parent is not None and parent.speedup else 1.0
    low, high = outcome.speedup_ci95 or (outcome.speedup, outcome.speedup)
    gain = outcome.speedup / before
    on = candidate.parent_id or "eager"
    if low > before:
        return "pattern", f"{move} gained {gain:.3g}x over {on} ({candidate.id})"
    if high < before:
        return "learning", f"{move} lost: {gain:.3g}x of {on} ({candidate.id})"
    if high <= low * CONCLUSIVE_WIDTH:
        return "learning", f"{move} made no difference to {on}: {gain:.3g}x ({candidate.id})"
    return None


def _top_finding(diagnosis: Diagnosis | None) -> str | None:
    if diagnosis is None:
        return None
    urgent = (f for f in diagnosis.ranked() if f.severity is not Severity.INFO)
    first = next(urgent, None)
    return None if first is None else f"{first.tool}: {first.summary}"
