"""The last word: the top candidates are measured again, side by side, on fresh inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kernelpro.loop.archive import Archive
from kernelpro.loop.base import Examiner
from kernelpro.schema.event import Remeasured
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.search import Objective, Tell
from kernelpro.search.reward import ranked
from kernelpro.search.tells import winner_id


class Winner(NamedTuple):
    """The candidate that survived, and the outcome that proves it."""

    node_id: str
    outcome: Outcome


def remeasure_top(
    accepted: Sequence[Tell], archive: Archive, examiner: Examiner, *, count: int,
    objective: Objective,
) -> Iterator[Remeasured]:  # fmt: skip
    """Measure the top ``count`` again; if none survives, the next ``count``, and so on."""
    order = [tell.node_id for tell in ranked(accepted, objective) if tell.node_id]
    while order and count > 0:
        batch, order = order[:count], order[count:]
        sources = [archive.attempt(node_id).candidate.proposal.source for node_id in batch]
        outcomes = examiner.remeasure(sources)
        for node_id, outcome in zip(batch, outcomes, strict=True):
            yield Remeasured(node_id=node_id, outcome=outcome)
        if any(outcome.ok for outcome in outcomes):
            return


def winner(remeasured: Mapping[str, Outcome], objective: Objective) -> Winner | None:
    """The best survivor of the second measurement; None if there is none."""
    node_id = winner_id(remeasured, objective)
    return None if node_id is None else Winner(node_id, remeasured[node_id])


def beats_eager(outcome: Outcome) -> bool:
    """True if the speed-up over eager exceeds 1 beyond its 95 % confidence interval."""
    if outcome.speedup is None:
        return False
    low = outcome.speedup_ci95[0] if outcome.speedup_ci95 else outcome.speedup
    return low > 1.0
