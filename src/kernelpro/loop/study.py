"""What an evaluated candidate teaches: findings, guidance, lessons, kept predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelpro.diagnosis.diagnose import diagnose
from kernelpro.diagnosis.guide import guide
from kernelpro.diagnosis.ledger import settle
from kernelpro.loop.base import Examined
from kernelpro.loop.state import RunState
from kernelpro.schema.candidate import Candidate
from kernelpro.schema.finding import Diagnosis
from kernelpro.schema.guidance import Guidance
from kernelpro.schema.memory import MemoryEntry
from kernelpro.schema.outcome import Outcome
from kernelpro.schema.profile import Profile
from kernelpro.schema.proposal_request import Attempt


class Study(NamedTuple):
    """Everything that was learnt from one candidate."""

    diagnosis: Diagnosis | None
    guidance: Guidance
    lessons: tuple[MemoryEntry, ...]
    ledger: tuple[dict[str, Any], ...]


def study(
    state: RunState, candidate: Candidate, examined: Examined, parent: Attempt | None
) -> Study:
    """Diagnose and guide as the run's feedback arm says; remember what was learnt.

    A failed candidate has no profile: its outcome alone becomes repair guidance.
    """
    outcome, profile = examined
    diagnosis = None if profile is None else _diagnose(state, profile, outcome)
    guidance = guide(diagnosis, outcome, arm=state.config.arm, profile=profile)
    before = parent.outcome if parent else None
    lessons = (
        state.memory.learn(candidate, outcome, before, diagnosis) if state.config.memory else ()
    )
    return Study(diagnosis, guidance, lessons, _settle(state, candidate, outcome, parent))


def _diagnose(state: RunState, profile: Profile, outcome: Outcome) -> Diagnosis:
    started = state.started
    return diagnose(
        profile,
        graph=started.graphs[0] if started.graphs else None,
        device=started.device,
        peaks=started.peaks,
        outcome=outcome,
        ledger=state.ledger,
        proactive=state.config.proactive,
        objective=state.config.objective,
    )


def _settle(
    state: RunState, candidate: Candidate, outcome: Outcome, parent: Attempt | None
) -> tuple[dict[str, Any], ...]:
    """Predicted against realised gain, where the writer was shown the parent's findings."""
    if state.config.arm != "full" or parent is None:
        return ()
    return settle(
        parent.diagnosis,
        candidate.proposal.acted_on,
        parent.outcome,
        outcome,
        device=state.started.device.name,
        node=candidate.id,
    )
