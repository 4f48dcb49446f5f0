"""Which move to make next from a given version: advice first, then what experience prefers.

Experience is the run's memory: a move that failed under the same conditions is not made again,
moves that gained elsewhere come sooner, moves that only ever lost come later. What nothing speaks
for is drawn by the request's seed, the recipe's own order weighing in, so that several attempts
from one place differ.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kernelpro.proposers.playbook.recipes.base import Backend, Task, Variant, fingerprint
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.proposal_request import Attempt, ProposalRequest


class Experience(NamedTuple):
    """What the memory says about moves."""

    futile: frozenset[str]
    """Moves that did not gain, or failed, under these very conditions."""
    failed: frozenset[str]
    """The part of them that gave no working candidate."""
    balance: Counter[str]
    """Gains less disappointments, under any conditions."""


def experience(memory: Iterable[MemoryEntry], here: str) -> Experience:
    """Sum up ``memory`` for moves made under conditions ``here``."""
    verdicts = [e for e in memory if e.move and e.retired_by is None]
    balance: Counter[str] = Counter()
    for entry in verdicts:
        if entry.category in ("pattern", "learning", "error"):
            balance[str(entry.move)] += 1 if entry.category == "pattern" else -1
    at_hand = [e for e in verdicts if e.conditions == here]
    return Experience(
        frozenset(str(e.move) for e in at_hand if e.category in ("learning", "error")),
        frozenset(str(e.move) for e in at_hand if e.category == "error"),
        balance,
    )


def improvements(
    request: ProposalRequest, parent: Attempt, base: object, backend: Backend, task: Task
) -> Iterator[Variant]:
    """Changes of ``base``, the settings of ``parent``, most promising first."""
    known = experience(request.memory, fingerprint(backend.name, base))
    for move, tool, why in _asked(parent):
        changed = backend.move(move, base, task)
        if changed is not None and move not in known.futile:
            yield Variant(changed, f"{_words(move)} ({tool})", why, move, (tool,))
    order = _order(backend.neighbours, known, random.Random(f"{request.seed}:moves"))
    for move in order:
        changed = backend.move(move, base, task)
        if changed is not None and move not in known.futile:
            yield Variant(changed, _words(move), "No finding asks for it: tried because it often "
                          "pays on this kind of kernel.", move)  # fmt: skip
    yield from _pairs(base, [m for m in order if m not in known.failed], backend, task)


def _asked(parent: Attempt) -> list[tuple[str, str, str]]:
    """(move, tool, reason) from the advice on the parent, first thing to do first.

    Only what the run's feedback arm lets a writer see: the guidance, not the diagnosis behind it.
    """
    items = parent.guidance.items if parent.guidance is not None else ()
    return [(move, item.tool, item.body) for item in items for move in item.moves]


def _order(moves: tuple[str, ...], known: Experience, draw: random.Random) -> list[str]:
    """Moves that gained first, those that only disappointed last; a weighted draw among equals.

    The weight falls as 1 / rank in the recipe's own order; exponential keys sample without
    replacement by weight (Efraimidis and Spirakis, 2006).
    """
    keys = {m: -math.log(1.0 - draw.random()) * (rank + 1) for rank, m in enumerate(moves)}
    standing = {m: min(1, max(-1, known.balance[m])) for m in moves}
    return sorted(moves, key=lambda m: (-standing[m], keys[m]))


def _pairs(base: object, order: list[str], backend: Backend, task: Task) -> Iterator[Variant]:
    """Two moves at once, when every single one has been tried."""
    for i, first in enumerate(order):
        for second in order[i + 1 :]:
            once = backend.move(first, base, task)
            twice = None if once is None else backend.move(second, once, task)
            if twice is not None and twice != base:
                yield Variant(twice, f"{_words(first)} and {_words(second)}",
                              "Every single move from here has been tried.")  # fmt: skip


def _words(move: str) -> str:
    return move.replace("_", " ")
