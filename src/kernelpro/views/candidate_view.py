"""Everything known about one attempt, gathered for its page."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome, Status
from kernelpro.schema.profile import Profile
from kernelpro.schema.search import Decision
from kernelpro.views.diff_view import DiffView, diff_view
from kernelpro.views.run import Run


class CandidateView(NamedTuple):
    """One attempt, with what led to it and what came of it."""

    id: str
    parent_id: str | None
    children: tuple[str, ...]
    title: str
    rationale: str
    mode: str
    writer: str
    recipe: str | None
    knobs: dict[str, Any]
    changed_knobs: tuple[tuple[str, Any, Any], ...]
    """Knob, value in the parent, value here."""
    acted_on: tuple[str, ...]
    duplicate_of: str | None
    decision: Decision | None
    status: Status | None
    speedup: float | None
    """As the search measured it."""
    again: Outcome | None
    """The second measurement of a finalist."""
    gain: float | None
    """Speed-up over the parent's speed-up; None unless both were accepted."""
    outcome: Outcome | None
    received: Guidance | None
    """What the writer had in front of it."""
    diagnosis: Diagnosis | None
    """What the tools then said about this attempt."""
    diff: DiffView
    """Against the parent, or against the problem's reference for a first version."""
    source_hash: str
    seconds: float
    memory: tuple[MemoryEntry, ...]
    """What the search memory kept of this attempt."""
    profile: Profile | None
    """Facts of how it ran; None if it was not profiled."""


def candidate_view(run: Run, node_id: str) -> CandidateView:
    """The attempt ``node_id`` of ``run``; ``KeyError`` if there is none."""
    finished = run.nodes[node_id]
    candidate = finished.candidate
    assert candidate is not None
    proposal = candidate.proposal
    parent = run.parent_of(node_id)
    outcome = finished.outcome
    ask = run.asks.get(finished.tell.ask_id)
    return CandidateView(
        id=node_id, parent_id=parent, children=tuple(run.children.get(node_id, ())),
        title=proposal.title, rationale=proposal.rationale, mode=proposal.mode,
        writer=proposal.writer, recipe=proposal.recipe, knobs=proposal.knobs,
        changed_knobs=_changed_knobs(run, node_id), acted_on=proposal.acted_on,
        duplicate_of=finished.duplicate_of, decision=ask.decision if ask else None,
        status=outcome.status if outcome else None, speedup=run.search_speedup(node_id),
        again=run.remeasured.get(node_id),
        gain=gain_over_parent(run, node_id), outcome=outcome, received=run.received(node_id),
        diagnosis=finished.diagnosis, diff=diff_view(_origin(run, parent), proposal.source),
        source_hash=candidate.source_hash, seconds=finished.seconds, memory=finished.memory,
        profile=finished.profile,
    )  # fmt: skip


def gain_over_parent(run: Run, node_id: str) -> float | None:
    """How much faster than its parent, both as measured during the search; None if unknown."""
    parent = run.parent_of(node_id)
    if parent is None:
        return None
    own, before = run.search_speedup(node_id), run.search_speedup(parent)
    return own / before if own and before else None


def _origin(run: Run, parent: str | None) -> str:
    if parent is not None:
        return run.source(parent)
    return run.started.problem.source if run.started else ""


def _changed_knobs(run: Run, node_id: str) -> tuple[tuple[str, Any, Any], ...]:
    parent, candidate = run.parent_of(node_id), run.nodes[node_id].candidate
    before = run.nodes[parent].candidate if parent else None
    if candidate is None or before is None:
        return ()
    old, new = before.proposal.knobs, candidate.proposal.knobs
    return tuple((k, old.get(k), v) for k, v in new.items() if old.get(k) != v)
