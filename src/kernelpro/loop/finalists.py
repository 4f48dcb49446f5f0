"""The last word: the top candidates are measured again, side by side, on fresh inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kernelpro.loop.archive import Archive
from kernelpro.loop.base import Examiner
from kernelpro.schema.event import Remeasured
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.search import Objective, Tell
from kernelpro.search.reward import ranked, tied
from kernelpro.search.tells import winner_id

TIED_FACTOR = 2
"""Finalists at most, as a multiple of those asked for, where several tie (chosen: each costs a
full evaluation)."""


class Winner(NamedTuple):
    """The candidate that survived, and the outcome that proves it."""

    node_id: str
    outcome: Outcome


def remeasure_top(
    accepted: Sequence[Tell], archive: Archive, examiner: Examiner, *, count: int,
    objective: Objective, max_slowdown: float | None = None,
) -> Iterator[Remeasured]:  # fmt: skip
    """Measure the top ``count`` again, and those the noise does not tell from the best of them.

    If none survives, the next ones, and so on.
    """
    order = ranked(accepted, objective, max_slowdown)
    while order and count > 0:
        size = field_size(order, count)
        batch, order = [tell.node_id or "" for tell in order[:size]], order[size:]
        sources = [archive.attempt(node_id).candidate.proposal.source for node_id in batch]
        outcomes = examiner.remeasure(sources)
        for node_id, outcome in zip(batch, outcomes, strict=True):
            yield Remeasured(node_id=node_id, outcome=outcome)
        if any(outcome.ok for outcome in outcomes):
            return


def field_size(order: Sequence[Tell], count: int) -> int:
    """How many of ``order`` (best first) stand for the second measurement: ``count``, and after
    them whoever ties with the first, up to ``TIED_FACTOR`` times as many in all."""
    size = min(count, len(order))
    while size < min(TIED_FACTOR * count, len(order)) and tied(order[size], order[0]):
        size += 1
    return size


def winner(
    remeasured: Mapping[str, Outcome], objective: Objective, max_slowdown: float | None = None
) -> Winner | None:
    """The best survivor of the second measurement; None if there is none."""
    node_id = winner_id(remeasured, objective, max_slowdown)
    return None if node_id is None else Winner(node_id, remeasured[node_id])


def beats_eager(outcome: Outcome) -> bool:
    """True if the speed-up over eager exceeds 1 beyond its 95 % confidence interval."""
    if outcome.speedup is None:
        return False
    low = outcome.speedup_ci95[0] if outcome.speedup_ci95 else outcome.speedup
    return low > 1.0
